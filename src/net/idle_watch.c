#include "net/idle_watch.h"

#include <unistd.h>

#include "engine/ready.h"

static void idle_watch_on_readable(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct idle_watch *s = CONTAINER_OF(w, struct idle_watch, io);
    enum sock_peek what;

    if (!ready_in_order(ev, w, revents))
        return;
    loop_set_activity(s->net->loop, "idle watch");
    /* libev could not watch the socket: treat it as closed. */
    what = revents & EV_ERROR ? SOCK_ENDED : sock_peek(s->fd);
    if (what != SOCK_SILENT)
        s->event(s, what);
}

void idle_watch_init(struct idle_watch *s, struct netloop *net, idle_watch_event *event)
{
    *s = (struct idle_watch){.net = net, .event = event, .fd = -1};
    ev_io_init(&s->io, idle_watch_on_readable, -1, EV_READ);
}

void idle_watch_watch(struct idle_watch *s, int fd)
{
    MUST(loop_is_current(s->net->loop) && s->fd < 0);
    s->fd = fd;
    ev_io_set(&s->io, fd, EV_READ);
    ev_io_start(s->net->ev, &s->io);
}

void idle_watch_rest(struct idle_watch *s)
{
    ready_stop(s->net->ev, &s->io);
}

enum sock_peek idle_watch_peek(const struct idle_watch *s)
{
    return sock_peek(s->fd);
}

int idle_watch_take(struct idle_watch *s)
{
    int fd = s->fd;

    ready_stop(s->net->ev, &s->io);
    s->fd = -1;
    return fd;
}

void idle_watch_close(struct idle_watch *s)
{
    int fd = idle_watch_take(s);

    if (fd >= 0)
        close(fd);
}
