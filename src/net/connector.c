#include "net/connector.h"

#include <errno.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "engine/ready.h"
#include "net/descriptor_budget.h"

/* Retry interval while a unix backlog is full: no event tells when the backlog has space. */
#define CONNECTOR_AGAIN_NS (10 * NS_PER_MS)

static bool connector_has_family(const struct address *list, unsigned n, sa_family_t family)
{
    for (unsigned i = 0; i < n; i++)
        if (list[i].u.sa.sa_family == family)
            return true;
    return false;
}

/* Return address ${k} of those of ${family}; if ${is} is false, of the others. */
static const struct address *connector_nth(const struct address *list, sa_family_t family, bool is,
                                           unsigned k)
{
    while ((list->u.sa.sa_family == family) != is || k-- > 0)
        list++;
    return list;
}

/* Return address ${k} in the order in which families alternate while both have addresses left. */
static const struct address *connector_take_turns(const struct address *list, unsigned n,
                                                  unsigned k)
{
    sa_family_t first = list[0].u.sa.sa_family;
    unsigned of_first = 0, pairs;

    for (unsigned i = 0; i < n; i++)
        of_first += list[i].u.sa.sa_family == first;
    pairs = of_first < n - of_first ? of_first : n - of_first;
    if (k < 2 * pairs)
        return connector_nth(list, first, k % 2 == 0, k / 2);
    return connector_nth(list, first, of_first > pairs, k - pairs);
}

static const struct address *connector_next_address(const struct connector *c)
{
    if (!c->mixed)
        return &c->addresses[c->begun];
    return connector_take_turns(c->addresses, c->n_addresses, c->begun);
}

static bool connector_address_waits(const struct connector *c)
{
    return c->begun < c->n_addresses;
}

static unsigned connector_running(const struct connector *c)
{
    unsigned n = 0;

    for (unsigned i = 0; i < CONNECTOR_ATTEMPTS; i++)
        n += c->attempts[i].address != NULL;
    return n;
}

static bool connector_may_begin(const struct connector *c)
{
    return connector_running(c) < c->width;
}

/* The session reserves one descriptor for its server; a parallel attempt needs another. */
static bool connector_borrow(struct connector *c)
{
    if (connector_running(c) == 0 || !c->net->descriptors)
        return true;
    c->borrowed = descriptor_budget_take(c->net->descriptors);
    return c->borrowed;
}

static void connector_give_back(struct connector *c)
{
    if (c->borrowed && connector_running(c) < 2) {
        descriptor_budget_release(c->net->descriptors, 1);
        c->borrowed = false;
    }
}

static void connector_close_by(struct connector *c, struct connector_attempt *at,
                               void (*close_it)(int fd))
{
    at->address = NULL;
    if (at->fd >= 0) {
        ready_stop(c->net->ev, &at->io);
        close_it(at->fd);
        at->fd = -1;
    }
    connector_give_back(c);
}

static void connector_close_fd(int fd)
{
    close(fd);
}

static void connector_close(struct connector *c, struct connector_attempt *at)
{
    connector_close_by(c, at, connector_close_fd);
}

static void connector_tell(struct connector *c, const struct connector_attempt *at, int error)
{
    if (c->tried && at->address)
        c->tried(c, at->address, error);
}

static void connector_fail(struct connector *c, struct connector_attempt *at, int error)
{
    connector_tell(c, at, error);
    connector_close(c, at);
    if (c->error == 0 || !sock_error_is_ours(error))
        c->error = error;
    c->next_at_ns = 0;
}

static void connector_rest(struct connector *c)
{
    if (c->conf)
        arena_release(c->conf->memory);
    c->conf = NULL;
}

static void connector_finish(struct connector *c, int fd, int error)
{
    loop_cancel(c->net->loop, &c->timer);
    for (unsigned i = 0; i < CONNECTOR_ATTEMPTS; i++) {
        struct connector_attempt *at = &c->attempts[i];

        if (error < 0 || at->address != &c->addresses[c->connected])
            connector_tell(c, at, error < 0 ? error : -ECANCELED);
        connector_close(c, at);
    }
    if (error == 0 && c->tried)
        c->tried(c, &c->addresses[c->connected], 0);
    connector_rest(c);
    c->done(c, fd, error);
}

/* Returns as sock_connect(). */
static int connector_open(struct connector *c, struct connector_attempt *at)
{
    const struct sock_connect_conf *conf = &c->conf->sock;
    int rc = c->client ? sock_connect_as(&at->fd, at->address, conf, c->client)
                       : sock_connect(&at->fd, at->address, conf);

    if ((rc < 0 && rc != -EINPROGRESS) || loop_reserve_fd(c->net->loop, at->fd) == 0)
        return rc;
    connector_close_fd(at->fd);
    at->fd = -1;
    return -ENOMEM;
}

/*
 * Begin to connect. Returns 0: begun or failed; -EAGAIN: unix backlog full, the timer retries;
 * other -errno: no resources for a second attempt.
 */
static int connector_try(struct connector *c, struct connector_attempt *at)
{
    int rc = connector_open(c, at);

    if (rc == -EAGAIN || (sock_error_is_exhaustion(rc) && connector_running(c) > 1))
        return rc;
    if (rc < 0 && rc != -EINPROGRESS) {
        connector_fail(c, at, rc);
        return 0;
    }
    ev_io_set(&at->io, at->fd, EV_READ | EV_WRITE);
    ev_io_start(c->net->ev, &at->io);
    return 0;
}

static int64_t connector_due_ns(const struct connector *c)
{
    return loop_due_ns(c->net->loop, c->began_at_ns, c->timeout_ns);
}

static int64_t connector_attempt_due_ns(const struct connector_attempt *at)
{
    return loop_due_ns(at->connector->net->loop, at->began_at_ns, at->share_ns);
}

/*
 * Try the next address. All remaining addresses get equal shares of the remaining time, so that a
 * silent server does not use all of it.
 */
static void connector_begin(struct connector *c, int64_t now_ns)
{
    struct connector_attempt *at = &c->attempts[c->attempts[0].address != NULL];
    int64_t share_ns = (connector_due_ns(c) - now_ns) / (c->n_addresses - c->begun);

    if (!connector_borrow(c)) {
        c->width = 1;
        return;
    }
    at->address = connector_next_address(c);
    at->began_at_ns = now_ns;
    at->share_ns = share_ns;
    c->begun++;
    c->next_at_ns = clock_add_ns(now_ns, c->conf->attempt_delay_ns);
    if (sock_error_is_exhaustion(connector_try(c, at))) {
        connector_close(c, at); /* try this address after the other attempt */
        c->begun--;
        c->width = 1;
    }
}

static struct connector_attempt *connector_oldest(struct connector *c)
{
    struct connector_attempt *a = &c->attempts[0], *b = &c->attempts[1];

    if (!a->address || !b->address)
        return a->address ? a : b;
    return connector_attempt_due_ns(a) <= connector_attempt_due_ns(b) ? a : b;
}

static bool connector_waits_again(const struct connector *c)
{
    for (unsigned i = 0; i < CONNECTOR_ATTEMPTS; i++)
        if (c->attempts[i].address && c->attempts[i].fd < 0)
            return true;
    return false;
}

/* Set the timer, which also reports failures, because connector_start() must not call done(). */
static void connector_arm(struct connector *c, int64_t now_ns)
{
    int64_t due_at_ns = connector_due_ns(c), at_ns = due_at_ns;

    if (connector_address_waits(c))
        at_ns =
            connector_may_begin(c) ? c->next_at_ns : connector_attempt_due_ns(connector_oldest(c));
    else if (connector_running(c) == 0)
        at_ns = now_ns;
    if (connector_waits_again(c) && at_ns > now_ns + CONNECTOR_AGAIN_NS)
        at_ns = now_ns + CONNECTOR_AGAIN_NS;
    at_ns = clock_sooner(at_ns, due_at_ns);
    loop_cancel(c->net->loop, &c->timer);
    loop_schedule(c->net->loop, &c->timer, at_ns - now_ns);
}

static void connector_retry(struct connector *c)
{
    for (unsigned i = 0; i < CONNECTOR_ATTEMPTS; i++) {
        struct connector_attempt *at = &c->attempts[i];

        if (at->address && at->fd < 0)
            (void)connector_try(c, at);
    }
}

static void connector_run_timer(struct task *t)
{
    struct connector *c = TIMER_OWNER(t, struct connector, timer);
    int64_t now_ns = clock_now_ns(), heard_ns = loop_heard_ns(c->net->loop);

    if (connector_running(c) == 0 && !connector_address_waits(c)) {
        connector_finish(c, -1, c->error);
        return;
    }
    if (heard_ns >= connector_due_ns(c)) {
        connector_finish(c, -1, -ETIMEDOUT);
        return;
    }
    connector_retry(c);
    if (connector_address_waits(c) && !connector_may_begin(c) &&
        heard_ns >= connector_attempt_due_ns(connector_oldest(c)))
        connector_fail(c, connector_oldest(c), -ETIMEDOUT);
    if (connector_address_waits(c) && connector_may_begin(c) && now_ns >= c->next_at_ns)
        connector_begin(c, now_ns);
    connector_arm(c, now_ns);
}

/* No drop(): the owner cancels the connector. */
static const struct task_type connector_timer_type = {.name = "connect timer",
                                                      .run = connector_run_timer};

/* A readable connection has failed, or its server sends first. */
static void connector_on_answer(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct connector_attempt *at = CONTAINER_OF(w, struct connector_attempt, io);
    struct connector *c = at->connector;
    int fd = at->fd, error = 0;

    if (!ready_in_order(ev, w, revents))
        return;
    loop_set_activity(c->net->loop, "connect");
    if (revents & EV_ERROR)
        error = -ENOMEM; /* libev stopped the watcher: out of memory */
    else if (revents & EV_READ)
        error = sock_error(fd);
    if (error == 0 && sock_is_self_connected(fd, at->address, &c->conf->sock))
        error = -ECONNREFUSED;
    if (error < 0) {
        connector_fail(c, at, error);
        connector_arm(c, clock_now_ns());
        return;
    }
    ready_stop(ev, w);
    at->fd = -1; /* done() owns it now */
    c->connected = (unsigned)(at->address - c->addresses);
    connector_finish(c, fd, 0);
}

void connector_init(struct connector *c, struct netloop *net, connector_done *done)
{
    *c = (struct connector){.net = net, .done = done};
    timer_init_silence(&c->timer, &connector_timer_type);
    for (unsigned i = 0; i < CONNECTOR_ATTEMPTS; i++) {
        c->attempts[i].connector = c;
        c->attempts[i].fd = -1;
        ev_io_init(&c->attempts[i].io, connector_on_answer, -1, EV_READ | EV_WRITE);
    }
}

void connector_start(struct connector *c, const struct address *addresses, unsigned n,
                     int64_t timeout_ns, const struct connector_conf *conf)
{
    int64_t now_ns = clock_now_ns();

    MUST(loop_is_current(c->net->loop) && !c->conf && n > 0);
    arena_hold(conf->memory);
    c->conf = conf;
    c->addresses = addresses;
    c->n_addresses = n;
    c->begun = 0;
    c->mixed = conf->attempt_delay_ns > 0 && connector_has_family(addresses, n, AF_INET) &&
               connector_has_family(addresses, n, AF_INET6);
    c->width = c->mixed ? CONNECTOR_ATTEMPTS : 1;
    c->error = 0;
    c->began_at_ns = now_ns;
    c->timeout_ns = timeout_ns;
    connector_begin(c, now_ns);
    connector_arm(c, now_ns);
}

void connector_cancel(struct connector *c)
{
    loop_cancel(c->net->loop, &c->timer);
    for (unsigned i = 0; i < CONNECTOR_ATTEMPTS; i++) {
        connector_tell(c, &c->attempts[i], -ECANCELED);
        connector_close_by(c, &c->attempts[i], sock_close_reset);
    }
    connector_rest(c);
}
