/*
 * source_server ADDRESS PORT: the other way round from sink_server: takes 4 bytes of seed, then
 * sends the pattern of that seed (see pattern.h) as fast as it is taken, until the receiver closes.
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

struct source {
    uint64_t sent_bytes;
    uint32_t seed;
    bool has_seed;
};

static int epfd;
static struct source *sources; /* by descriptor */

static void source_accept(int listener)
{
    int fd;

    while ((fd = net_accept(listener)) >= 0) {
        sources[fd] = (struct source){0};
        net_watch(epfd, EPOLL_CTL_ADD, fd, EPOLLIN);
    }
}

/* The 4 bytes are sent by themselves and first, so they come in one piece. */
static void source_readable(int fd)
{
    struct source *source = &sources[fd];
    ssize_t got = recv(fd, &source->seed, sizeof(source->seed), 0);

    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0) {
        close(fd);
        return;
    }
    if (got != sizeof(source->seed))
        die("a stream began with %zd bytes of a seed", got);
    source->has_seed = true;
    net_watch(epfd, EPOLL_CTL_MOD, fd, EPOLLOUT);
}

static void source_writable(int fd)
{
    struct source *source = &sources[fd];
    ssize_t sent =
        send(fd, pattern_at(source->seed, source->sent_bytes), PATTERN_CHUNK_BYTES, MSG_NOSIGNAL);

    if (sent > 0)
        source->sent_bytes += (uint64_t)sent;
    else if (errno != EAGAIN)
        close(fd);
}

static void source_run(int listener)
{
    struct epoll_event events[EVENTS_PER_TURN];

    for (;;) {
        int count = epoll_wait(epfd, events, EVENTS_PER_TURN, -1);

        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;

            if (fd == listener)
                source_accept(listener);
            else if (sources[fd].has_seed)
                source_writable(fd);
            else
                source_readable(fd);
        }
    }
}

int main(int argc, char **argv)
{
    struct sockaddr_in address;
    int listener;

    if (argc != 3)
        die("usage: source_server ADDRESS PORT");
    pattern_init();
    sources = calloc((size_t)net_raise_nofile(), sizeof(*sources));
    if (!sources)
        die_errno("calloc");
    address = net_parse(argv[1], argv[2]);
    listener = net_listen(&address);
    epfd = epoll_create1(EPOLL_CLOEXEC);
    if (epfd < 0)
        die_errno("epoll_create1");
    net_watch(epfd, EPOLL_CTL_ADD, listener, EPOLLIN);
    source_run(listener);
}
