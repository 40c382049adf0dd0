/* support/echo_server: see echo_server.h. Everything but open and close runs on its thread. */
#include "support/echo_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/must.h"
#include "support/sockets.h"

#define LOOK_MS    50 /* whether it is over */
#define DATA_BYTES 16384

struct peer {
    size_t at, len; /* of `data`: what is still to be sent */
    uint8_t data[DATA_BYTES];
};

struct echo_server {
    int fd;
    atomic_bool over;
    pthread_t thread;
    unsigned n_peers;
    struct peer peers[ECHO_SERVER_PEERS];
    struct pollfd fds[ECHO_SERVER_PEERS + 1]; /* -1: no peer; the last one listens */
};

static ssize_t peer_move(struct peer *p, int fd)
{
    ssize_t n;

    if (p->len > 0) {
        n = send(fd, p->data + p->at, p->len, MSG_DONTWAIT | MSG_NOSIGNAL);
        p->at += n > 0 ? (size_t)n : 0;
        p->len -= n > 0 ? (size_t)n : 0;
    } else {
        n = recv(fd, p->data, sizeof(p->data), MSG_DONTWAIT);
        p->at = 0;
        p->len = n > 0 ? (size_t)n : 0;
    }
    return n;
}

static void echo_server_serve(struct echo_server *s, unsigned i)
{
    ssize_t n = peer_move(&s->peers[i], s->fds[i].fd);

    s->fds[i].events = s->peers[i].len > 0 ? POLLOUT : POLLIN;
    if (n > 0 || (n < 0 && errno == EAGAIN))
        return;
    close(s->fds[i].fd);
    s->fds[i].fd = -1;
    s->peers[i].len = 0;
    s->n_peers--;
}

static void echo_server_accept(struct echo_server *s)
{
    unsigned i = 0;

    while (i < ECHO_SERVER_PEERS && s->fds[i].fd >= 0)
        i++;
    MUST(i < ECHO_SERVER_PEERS);
    s->fds[i] = (struct pollfd){.fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC), .events = POLLIN};
    MUST(s->fds[i].fd >= 0);
    s->n_peers++;
}

static void *echo_server_main(void *arg)
{
    struct echo_server *s = arg;

    for (unsigned i = 0; i < ECHO_SERVER_PEERS; i++)
        s->fds[i].fd = -1;
    s->fds[ECHO_SERVER_PEERS] = (struct pollfd){.fd = s->fd, .events = POLLIN};
    while (s->n_peers > 0 || !atomic_load(&s->over)) {
        MUST(poll(s->fds, ECHO_SERVER_PEERS + 1, LOOK_MS) >= 0);
        for (unsigned i = 0; i < ECHO_SERVER_PEERS; i++)
            if (s->fds[i].fd >= 0 && s->fds[i].revents)
                echo_server_serve(s, i);
        if (s->fds[ECHO_SERVER_PEERS].revents)
            echo_server_accept(s);
    }
    return NULL;
}

void echo_server_open(struct echo_server **out, struct address *a)
{
    struct echo_server *s = calloc(1, sizeof(*s));

    MUST(s);
    sockets_loopback(a, 0);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(s->fd >= 0);
    MUST(bind(s->fd, &a->u.sa, a->len) == 0 && listen(s->fd, ECHO_SERVER_PEERS) == 0);
    MUST(getsockname(s->fd, &a->u.sa, &a->len) == 0);
    MUST(pthread_create(&s->thread, NULL, echo_server_main, s) == 0);
    *out = s;
}

void echo_server_close(struct echo_server *s)
{
    atomic_store(&s->over, true);
    pthread_join(s->thread, NULL);
    close(s->fd);
    free(s);
}
