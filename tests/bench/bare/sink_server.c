/*
 * sink_server ADDRESS PORT: takes in bulk streams, checks every byte, and gives a receipt.
 *
 * A stream is 4 bytes of seed (see pattern.h), then the pattern of that seed, then end of file; the
 * answer is 8 bytes, the number of pattern bytes received, and close. So whoever sent the stream
 * knows that nothing was lost, and that a half-closed connection still brings an answer.
 */
#include "common/die.h"
#include "common/net.h"
#include "common/pattern.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_PER_TURN = 64 };

struct sink {
    uint64_t received_bytes;
    uint32_t seed;
    bool has_seed;
};

static int epfd;
static struct sink *sinks; /* by descriptor */
static uint8_t buffer[PATTERN_CHUNK_BYTES];

static void sink_accept(int listener)
{
    int fd;

    while ((fd = net_accept(listener)) >= 0) {
        sinks[fd] = (struct sink){0};
        net_watch(epfd, EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

static void sink_end(int fd)
{
    send(fd, &sinks[fd].received_bytes, sizeof(sinks[fd].received_bytes), MSG_NOSIGNAL);
    close(fd);
}

/* The 4 bytes are sent by themselves and first, so they come in one piece. */
static ssize_t sink_read_seed(int fd, struct sink *sink)
{
    ssize_t got = recv(fd, &sink->seed, sizeof(sink->seed), 0);

    if (got > 0 && got != sizeof(sink->seed))
        die("a stream began with %zd bytes of a seed", got);
    sink->has_seed = got > 0;
    return got;
}

static void sink_readable(int fd)
{
    struct sink *sink = &sinks[fd];
    ssize_t got;

    if (!sink->has_seed) {
        got = sink_read_seed(fd, sink);
    } else {
        got = recv(fd, buffer, sizeof(buffer), 0);
        if (got > 0) {
            pattern_check(sink->seed, sink->received_bytes, buffer, (size_t)got);
            sink->received_bytes += (uint64_t)got;
        }
    }
    if (got == 0)
        sink_end(fd);
    else if (got < 0 && errno != EAGAIN)
        close(fd);
}

static void sink_run(int listener)
{
    struct epoll_event events[EVENTS_PER_TURN];

    for (;;) {
        int count = epoll_wait(epfd, events, EVENTS_PER_TURN, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == listener)
                sink_accept(listener);
            else
                sink_readable(events[i].data.fd);
        }
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address;
    int listener;

    if (argc != 3)
        die("usage: sink_server ADDRESS PORT");
    pattern_init();
    sinks = calloc((size_t)net_raise_nofile(), sizeof(*sinks));
    if (!sinks)
        die_errno("calloc");
    address = net_parse(argv[1], argv[2]);
    listener = net_listen(&address);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    if (epfd < 0)
        die_errno("epoll_create1");
    net_watch(epfd, EPOLL_CTL_ADD, listener, EPOLLIN);
    sink_run(listener);
}
