/*
 * note: likely. Whether another client waits, accept4(2) tells by failing; the next poll tells for
 * nothing. So an event accepts only as many clients as were there when the end of the queue was
 * found last. When ACCEPTOR_FULL_EVENTS events in a row have found so many, more may wait behind
 * them: the next one looks for the end, within the batch.
 */
#include "net/acceptor.h"

#include <errno.h>
#include <ev.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/ready.h"

#define ACCEPTOR_PAUSE_NS (100 * NS_PER_MS)

/* An episode of failures to accept ends this long after the pause that follows its last failure. */
#define ACCEPTOR_CALM_NS (1 * NS_PER_S)

/* See note: likely. */
#define ACCEPTOR_FULL_EVENTS 16

enum acceptor_pause {
    ACCEPTOR_ACCEPTS,
    ACCEPTOR_PAUSED_EXHAUSTED,
    ACCEPTOR_PAUSED_BY_OWNER /* by admit() */
};

struct acceptor {
    struct ev_io io;
    struct loop *loop; /* NULL: not started */
    int fd;            /* -1: stopped */
    atomic_uint batch; /* limit of accepts per event; relaxed */
    unsigned likely;   /* see note: likely; UINT_MAX: look for the end of the queue */
    unsigned full;     /* events in a row that found so many */
    const struct acceptor_ops *ops;
    void *cookie;
    struct timer retry;
    int64_t episode_at_ns; /* first failure of the episode; 0: no episode */
    int64_t error_at_ns;
    unsigned episode_errors;
    enum acceptor_pause paused;
};

/* More than the largest configurable backlog. */
#define ACCEPTOR_DRAIN_MAX 65536

/* Does ${error} concern only the new connection, not accepting? See accept(2), "Error handling". */
static bool acceptor_error_is_transient(int error)
{
    switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH: return true;
    default: return false;
    }
}

static void acceptor_pause(struct acceptor *ac, enum acceptor_pause pause, int64_t ns)
{
    ac->paused = pause;
    ready_stop(loop_ev(ac->loop), &ac->io);
    loop_cancel(ac->loop, &ac->retry);
    loop_schedule(ac->loop, &ac->retry, ns);
}

static const char *acceptor_name(const struct acceptor *ac, char *text, size_t size)
{
    ac->ops->name(ac->cookie, text, size);
    return text;
}

static void acceptor_exhausted(struct acceptor *ac, int error)
{
    char name[ACCEPTOR_NAME_BYTES];

    ac->error_at_ns = clock_now_ns();
    if (ac->episode_at_ns == 0) {
        ac->episode_at_ns = ac->error_at_ns;
        ac->episode_errors = 0;
        log_event(LOG_LISTENER, LOG_LEVEL_WARNING, "%s: cannot accept: %s; new clients wait",
                  acceptor_name(ac, name, sizeof(name)), strerror(error));
    }
    ac->episode_errors++;
    acceptor_pause(ac, ACCEPTOR_PAUSED_EXHAUSTED, ACCEPTOR_PAUSE_NS);
}

static void acceptor_end_episode(struct acceptor *ac)
{
    double seconds = (double)(clock_now_ns() - ac->episode_at_ns) / (double)NS_PER_S;
    char name[ACCEPTOR_NAME_BYTES];

    log_event(LOG_LISTENER, LOG_LEVEL_NOTICE, "%s: accepting again after %.1f s; errors: %u",
              acceptor_name(ac, name, sizeof(name)), seconds, ac->episode_errors);
    ac->episode_at_ns = 0;
}

static int acceptor_accept(struct acceptor *ac)
{
    struct address peer = {.len = sizeof(peer.u)};
    int fd = accept4(ac->fd, &peer.u.sa, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int error = errno;

    if (fd >= 0) {
        ac->ops->accepted(ac->cookie, fd, &peer);
        return 0;
    }
    if (ac->ops->nobody)
        ac->ops->nobody(ac->cookie);
    return error;
}

/* The end of the queue is behind ${n} clients. See note: likely. */
static void acceptor_found_end(struct acceptor *ac, unsigned n)
{
    ac->likely = n > 0 ? n : 1;
    ac->full = 0;
}

static void acceptor_found_no_end(struct acceptor *ac)
{
    if (++ac->full >= ACCEPTOR_FULL_EVENTS)
        ac->likely = UINT_MAX;
}

/*
 * Accept up to ${max} clients. Returns 0: more clients may wait; EAGAIN: no client waits, or pause
 * for *${wait_ns}; other errno: out of resources.
 */
static int acceptor_burst(struct acceptor *ac, unsigned max, int64_t *wait_ns)
{
    *wait_ns = 0;
    for (unsigned i = 0; i < max && ac->fd >= 0; i++) {
        int error;

        if (ac->ops->admit)
            *wait_ns = ac->ops->admit(ac->cookie);
        if (*wait_ns == ACCEPTOR_EXHAUSTED)
            return EMFILE;
        if (*wait_ns > 0)
            return EAGAIN;
        error = acceptor_accept(ac);
        if (error == EAGAIN)
            acceptor_found_end(ac, i);
        if (error != 0 && !acceptor_error_is_transient(error))
            return error;
    }
    acceptor_found_no_end(ac);
    return 0;
}

static unsigned acceptor_max(const struct acceptor *ac)
{
    unsigned batch = atomic_load_explicit(&ac->batch, memory_order_relaxed);

    return ac->likely < batch ? ac->likely : batch;
}

static void acceptor_on_readable(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct acceptor *ac = CONTAINER_OF(w, struct acceptor, io);
    int64_t wait_ns = 0;
    int error;

    if (!ready_in_order(ev, w, revents))
        return;
    loop_set_activity(ac->loop, "accept");
    /* EV_ERROR: libev is out of memory and stopped the watcher */
    error = revents & EV_ERROR ? ENOMEM : acceptor_burst(ac, acceptor_max(ac), &wait_ns);
    if (wait_ns > 0)
        acceptor_pause(ac, ACCEPTOR_PAUSED_BY_OWNER, wait_ns);
    else if (error != 0 && error != EAGAIN)
        acceptor_exhausted(ac, error);
}

static void acceptor_go_on(struct acceptor *ac)
{
    if (loop_reserve_fd(ac->loop, ac->fd) < 0) {
        acceptor_exhausted(ac, ENOMEM);
        return;
    }
    ac->paused = ACCEPTOR_ACCEPTS;
    ac->likely = UINT_MAX;
    ev_io_start(loop_ev(ac->loop), &ac->io);
    loop_cancel(ac->loop, &ac->retry);
    if (ac->episode_at_ns != 0)
        loop_schedule(ac->loop, &ac->retry,
                      clock_add_ns(ac->error_at_ns, ACCEPTOR_PAUSE_NS + ACCEPTOR_CALM_NS) -
                          clock_now_ns());
}

static void acceptor_run_retry(struct task *t)
{
    struct acceptor *ac = TIMER_OWNER(t, struct acceptor, retry);

    if (ac->paused != ACCEPTOR_ACCEPTS)
        acceptor_go_on(ac);
    else
        acceptor_end_episode(ac);
}

/* No drop(): the owner stops the acceptor. */
static const struct task_type acceptor_retry_type = {.name = "accept again",
                                                     .run = acceptor_run_retry};

int acceptor_create(struct acceptor **out, unsigned batch, int fd, const struct acceptor_ops *ops,
                    void *cookie)
{
    struct acceptor *ac = calloc(1, sizeof(*ac));

    if (!ac)
        return -ENOMEM;
    ac->fd = fd;
    atomic_init(&ac->batch, batch);
    ac->ops = ops;
    ac->cookie = cookie;
    timer_init(&ac->retry, &acceptor_retry_type);
    ev_io_init(&ac->io, acceptor_on_readable, fd, EV_READ);
    *out = ac;
    return 0;
}

void acceptor_start(struct acceptor *ac, struct loop *loop)
{
    MUST(loop_is_current(loop) && !ac->loop);
    if (ac->fd < 0)
        return;
    ac->loop = loop;
    acceptor_go_on(ac);
}

void acceptor_set_batch(struct acceptor *ac, unsigned batch)
{
    atomic_store_explicit(&ac->batch, batch, memory_order_relaxed);
}

void acceptor_resume(struct acceptor *ac)
{
    if (ac->loop && ac->fd >= 0 && ac->paused == ACCEPTOR_PAUSED_BY_OWNER)
        acceptor_go_on(ac);
}

void acceptor_leave(struct acceptor *ac)
{
    if (ac->fd < 0 || !ac->loop)
        return;
    loop_cancel(ac->loop, &ac->retry);
    ready_stop(loop_ev(ac->loop), &ac->io);
    ac->loop = NULL;
}

void acceptor_drain(struct acceptor *ac)
{
    int64_t wait_ns;

    if (ac->loop && ac->fd >= 0)
        (void)acceptor_burst(ac, ACCEPTOR_DRAIN_MAX, &wait_ns);
}

void acceptor_stop(struct acceptor *ac)
{
    if (ac->fd < 0)
        return;
    if (ac->loop && loop_state(ac->loop) != LOOP_TERMINATED) {
        loop_cancel(ac->loop, &ac->retry);
        ready_stop(loop_ev(ac->loop), &ac->io);
    }
    close(ac->fd);
    ac->fd = -1;
}

void acceptor_destroy(struct acceptor *ac)
{
    if (!ac)
        return;
    MUST(ac->fd < 0);
    free(ac);
}
