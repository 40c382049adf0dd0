/* net/connector: see connector.h. */
#include "net/connector.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/sock.h"

/* A full unix backlog gives no event when it has room again. */
#define CONNECTOR_AGAIN_NS (10 * NS_PER_MS)

static void connector_try(struct connector *c);

static void connector_close(struct connector *c)
{
    if (c->fd < 0)
        return;
    ev_io_stop(c->net->ev, &c->io);
    close(c->fd);
    c->fd = -1;
}

static void connector_finish(struct connector *c, int error)
{
    int fd = c->fd;

    loop_cancel(c->net->loop, &c->timer);
    if (error < 0) {
        connector_close(c);
        fd = -1;
    } else {
        ev_io_stop(c->net->ev, &c->io);
        c->fd = -1; /* the callee owns it now */
    }
    c->done(c, fd, error);
}

/* Have the outcome or the next try come from a timer, never from inside the caller. */
static void connector_wait(struct connector *c, int64_t delay_ns)
{
    int64_t left_ns = c->address_until_ns - clock_now_ns();

    loop_cancel(c->net->loop, &c->timer);
    loop_schedule(c->net->loop, &c->timer, delay_ns < left_ns ? delay_ns : left_ns);
}

/* The addresses that are left share the time that is left, so that a black hole does not use up all of it. */
static void connector_share(struct connector *c)
{
    int64_t now_ns = clock_now_ns();
    int64_t left_ns = c->deadline_at_ns - now_ns;

    if (c->at < c->n_addresses)
        c->address_until_ns = clock_add_ns(now_ns, left_ns / (c->n_addresses - c->at));
}

/* This host has no way there, which many have not for IPv6: that says nothing about the server. */
static bool connector_error_is_ours(int error)
{
    return error == -ENETUNREACH || error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL;
}

static void connector_fail_address(struct connector *c, int error)
{
    connector_close(c);
    if (c->error == 0 || !connector_error_is_ours(error))
        c->error = error;
    c->at++;
    connector_share(c);
    connector_wait(c, 0);
}

static void connector_on_writable(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct connector *c = CONTAINER_OF(w, struct connector, io);
    int error = revents & EV_ERROR ? -ENOMEM : sock_error(c->fd); /* as in acceptor.c */

    (void)ev;
    loop_doing(c->net->loop, "connect");
    if (error == 0 && sock_is_self_connected(c->fd, &c->addresses[c->at]))
        error = -ECONNREFUSED;
    if (error == 0)
        connector_finish(c, 0);
    else
        connector_fail_address(c, error);
}

static void connector_run_timer(struct task *t)
{
    struct connector *c =
        CONTAINER_OF(CONTAINER_OF(t, struct timed, task), struct connector, timer);

    if (c->at >= c->n_addresses)
        connector_finish(c, c->error);
    else if (clock_now_ns() >= c->address_until_ns)
        connector_fail_address(c, -ETIMEDOUT);
    else
        connector_try(c);
}

static void connector_drop_timer(struct task *t)
{
    (void)t; /* the loop ends: the session that owns the connector cancels it */
}

static const struct task_type connector_timer_type = {
    .name = "connect timer", .run = connector_run_timer, .drop = connector_drop_timer};

static void connector_try(struct connector *c)
{
    const struct address *a = &c->addresses[c->at];
    int rc = c->unseen ? sock_connect_unseen(&c->fd, a) : sock_connect(&c->fd, a);

    if (rc == -EAGAIN) {
        connector_wait(c, CONNECTOR_AGAIN_NS);
        return;
    }
    if (rc < 0 && rc != -EINPROGRESS) {
        connector_fail_address(c, rc);
        return;
    }
    ev_io_set(&c->io, c->fd, EV_WRITE);
    ev_io_start(c->net->ev, &c->io);
    connector_wait(c, CLOCK_NEVER);
}

void connector_init(struct connector *c, struct netloop *net, connector_done *done)
{
    *c = (struct connector){.net = net, .done = done, .fd = -1};
    timed_init(&c->timer, &connector_timer_type);
    ev_io_init(&c->io, connector_on_writable, -1, EV_WRITE);
}

void connector_start(struct connector *c, const struct address *addresses, unsigned n,
                     int64_t timeout_ns)
{
    MUST(loop_is_current(c->net->loop) && c->fd < 0 && n > 0);
    c->addresses = addresses;
    c->n_addresses = n;
    c->at = 0;
    c->error = 0;
    c->deadline_at_ns = clock_add_ns(clock_now_ns(), timeout_ns);
    connector_share(c);
    connector_try(c);
}

void connector_cancel(struct connector *c)
{
    loop_cancel(c->net->loop, &c->timer);
    connector_close(c);
}
