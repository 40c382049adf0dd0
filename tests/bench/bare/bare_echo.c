/*
 * bare_echo ADDRESS PORT: the least an echo server can do, the yardstick of the echo rows and the
 * upstream of the proxy rows. One thread, level-triggered epoll, one recv and one send per event.
 *
 * A connection that is not blocked has no state at all in this process: an event touches the shared
 * scratch buffer and nothing else. What a blocked receiver has not taken is kept in held[fd].
 */
#include "common/die.h"
#include "common/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SCRATCH_BYTES = 65536,
    EVENTS_PER_TURN = 512,
};

struct held {
    size_t sent_bytes;
    size_t len_bytes;
    uint8_t data[];
};

static int epfd;
static struct held **held;
static uint8_t scratch[SCRATCH_BYTES];

static void echo_close(int fd)
{
    free(held[fd]);
    held[fd] = NULL;
    close(fd);
}

/* Keep what the receiver did not take; until it has, only its being writable is of interest. */
static void echo_hold(int fd, const uint8_t *data, size_t len)
{
    struct held *h = malloc(sizeof(*h) + len);

    if (!h)
        die_errno("malloc");
    h->sent_bytes = 0;
    h->len_bytes = len;
    memcpy(h->data, data, len);
    held[fd] = h;
    net_watch(epfd, EPOLL_CTL_MOD, fd, EPOLLOUT);
}

static void echo_readable(int fd)
{
    ssize_t got = recv(fd, scratch, sizeof(scratch), 0);
    ssize_t sent;

    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            echo_close(fd);
        return;
    }
    sent = send(fd, scratch, (size_t)got, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        echo_close(fd);
        return;
    }
    if (sent < 0)
        sent = 0;
    if (sent < got)
        echo_hold(fd, scratch + sent, (size_t)(got - sent));
}

static void echo_writable(int fd)
{
    struct held *h = held[fd];
    ssize_t sent = send(fd, h->data + h->sent_bytes, h->len_bytes - h->sent_bytes, MSG_NOSIGNAL);

    if (sent < 0) {
        if (errno != EAGAIN)
            echo_close(fd);
        return;
    }
    h->sent_bytes += (size_t)sent;
    if (h->sent_bytes < h->len_bytes)
        return;
    free(h);
    held[fd] = NULL;
    net_watch(epfd, EPOLL_CTL_MOD, fd, EPOLLIN);
}

static void echo_accept(int listener)
{
    int fd;

    while ((fd = net_accept(listener)) >= 0)
        net_watch(epfd, EPOLL_CTL_ADD, fd, EPOLLIN);
}

static void echo_run(int listener)
{
    struct epoll_event events[EVENTS_PER_TURN];

    for (;;) {
        int count = epoll_wait(epfd, events, EVENTS_PER_TURN, -1);

        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;

            if (fd == listener)
                echo_accept(listener);
            else if (events[i].events == EPOLLIN)
                echo_readable(fd);
            else if (held[fd])
                echo_writable(fd);
            else
                echo_readable(fd); /* EPOLLHUP or EPOLLERR: recv says which */
        }
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address;
    int listener;

    if (argc != 3)
        die("usage: bare_echo ADDRESS PORT");
    held = calloc((size_t)net_raise_nofile(), sizeof(struct held *));
    if (!held)
        die_errno("calloc");
    address = net_parse(argv[1], argv[2]);
    listener = net_listen(&address);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    if (epfd < 0)
        die_errno("epoll_create1");
    net_watch(epfd, EPOLL_CTL_ADD, listener, EPOLLIN);
    echo_run(listener);
}
