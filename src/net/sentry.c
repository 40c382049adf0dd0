/* net/sentry: see sentry.h. */
#include "net/sentry.h"

#include <unistd.h>

#include "engine/ready.h"

static void sentry_on_readable(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct sentry *s = CONTAINER_OF(w, struct sentry, io);
    enum sock_peek what;

    if (!ready_is_turn(ev, w, revents))
        return;
    loop_doing(s->net->loop, "sentry");
    /* An error is libev's: it could not watch the socket, and its owner must not rely on it. */
    what = revents & EV_ERROR ? SOCK_ENDED : sock_peek(s->fd);
    if (what != SOCK_SILENT)
        s->event(s, what);
}

void sentry_init(struct sentry *s, struct netloop *net, sentry_event *event)
{
    *s = (struct sentry){.net = net, .event = event, .fd = -1};
    ev_io_init(&s->io, sentry_on_readable, -1, EV_READ);
}

void sentry_watch(struct sentry *s, int fd)
{
    MUST(loop_is_current(s->net->loop) && s->fd < 0);
    s->fd = fd;
    ev_io_set(&s->io, fd, EV_READ);
    ev_io_start(s->net->ev, &s->io);
}

void sentry_rest(struct sentry *s)
{
    ready_stop(s->net->ev, &s->io);
}

enum sock_peek sentry_peek(const struct sentry *s)
{
    return sock_peek(s->fd);
}

int sentry_take(struct sentry *s)
{
    int fd = s->fd;

    ready_stop(s->net->ev, &s->io);
    s->fd = -1;
    return fd;
}

void sentry_close(struct sentry *s)
{
    int fd = sentry_take(s);

    if (fd >= 0)
        close(fd);
}
