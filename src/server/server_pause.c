#include "server/server_pause.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "limits/hold.h"
#include "listen/listeners.h"
#include "server/server_internal.h"
#include "server/upstreams.h"
#include "upstream/upstream.h"

#define SERVER_PAUSE_TICK_NS (10 * NS_PER_MS)

/*
 * After so many ticks without a client a listener's queue counts as empty: a boss may be late for
 * some ticks.
 */
#define SERVER_PAUSE_IDLE_TICKS 10

struct server_pause {
    struct list link;
    struct server *sv;
    struct listener *listener; /* a reference; or NULL */
    struct upstream *upstream; /* a reference; or NULL */
    struct hold *hold;
    struct timer timer; /* end of the pause, or next tick of its release */
    int64_t until_ns;
    unsigned max_held;
    unsigned rate;    /* clients per second; 0: not released yet */
    int64_t due;      /* clients to release, times NS_PER_S; the next tick gets the remainder */
    unsigned allowed; /* clients allowed in the last tick */
    unsigned idle_ticks;
};

static struct loop *server_pause_loop(const struct server_pause *p)
{
    return threads_control(&p->sv->threads);
}

static void server_pause_wake(struct server_pause *p)
{
    if (p->listener)
        connection_limit_retry(&p->sv->connection_limit);
    else
        upstream_serve(p->upstream);
}

static void server_pause_free(struct server_pause *p)
{
    if (p->listener)
        listener_release(p->listener);
    if (p->upstream)
        upstream_release(p->upstream);
    atomic_fetch_sub_explicit(&p->sv->n_pauses, 1, memory_order_relaxed);
    lock_take(&p->sv->pauses_lock);
    list_remove(&p->link);
    lock_release(&p->sv->pauses_lock);
    free(p);
}

static void server_pause_log_over(const struct server_pause *p)
{
    log_event(p->listener ? LOG_LISTENER : LOG_UPSTREAM, LOG_LEVEL_NOTICE,
              "%s %s: the pause is over", p->listener ? "listen" : "upstream",
              p->listener ? listener_name(p->listener) : p->upstream->name);
}

static void server_pause_end(struct server_pause *p)
{
    server_pause_log_over(p);
    if (p->listener)
        hold_open(p->hold);
    else
        wait_queue_resume(&p->upstream->waiting, clock_now_ns());
    server_pause_wake(p);
    server_pause_free(p);
}

/* Is no client held any more? ${unused}: unused rest of the last tick's allowance. */
static bool server_pause_is_released(struct server_pause *p, unsigned unused)
{
    if (p->upstream)
        return wait_queue_length(&p->upstream->waiting) == 0;
    if (p->allowed > 0)
        p->idle_ticks = unused >= p->allowed ? p->idle_ticks + 1 : 0;
    return p->idle_ticks >= SERVER_PAUSE_IDLE_TICKS;
}

static void server_pause_tick(struct server_pause *p)
{
    unsigned unused, next;

    p->due += (int64_t)p->rate * SERVER_PAUSE_TICK_NS;
    next = (unsigned)(p->due / NS_PER_S);
    unused = hold_allow(p->hold, next);
    if (server_pause_is_released(p, unused)) {
        server_pause_end(p);
        return;
    }
    p->due %= NS_PER_S;
    p->allowed = next;
    if (next > 0)
        server_pause_wake(p);
    loop_schedule(server_pause_loop(p), &p->timer, SERVER_PAUSE_TICK_NS);
}

static void server_pause_run(struct task *t)
{
    struct server_pause *p = TIMER_OWNER(t, struct server_pause, timer);

    if (p->rate > 0)
        server_pause_tick(p);
    else
        server_pause_end(p);
}

/* No drop(): server_pause_free_all() frees the pause. */
static const struct task_type server_pause_type = {.name = "pause", .run = server_pause_run};

static struct server_pause *server_pause_find(const struct server *sv,
                                              const struct server_pause_target *target)
{
    list_for_each (node, &sv->pauses) {
        struct server_pause *p = LIST_ENTRY(node, struct server_pause, link);

        if (target->listener
                ? p->listener && strcmp(listener_name(p->listener), target->listener) == 0
                : p->upstream && strcmp(p->upstream->name, target->upstream) == 0)
            return p;
    }
    return NULL;
}

static int server_pause_create(struct server_pause **out, struct server *sv,
                               const struct server_pause_target *target)
{
    struct server_pause *p = calloc(1, sizeof(*p));

    if (!p)
        return -ENOMEM;
    p->sv = sv;
    timer_init(&p->timer, &server_pause_type);
    if (target->listener)
        p->listener = listeners_lookup(sv->listeners, target->listener);
    else
        p->upstream =
            upstreams_configured(sv->upstreams, target->upstream, strlen(target->upstream));
    if (!p->listener && !p->upstream) {
        free(p);
        return -ENOENT;
    }
    if (p->upstream)
        (void)upstream_hold(p->upstream);
    p->hold = p->listener ? listener_pause_hold(p->listener) : &p->upstream->waiting.hold;
    lock_take(&sv->pauses_lock);
    list_append(&sv->pauses, &p->link);
    lock_release(&sv->pauses_lock);
    atomic_fetch_add_explicit(&sv->n_pauses, 1, memory_order_relaxed);
    *out = p;
    return 0;
}

/* Start the timer; before the server's start, leave that to server_pause_start(). */
static void server_pause_time(struct server_pause *p)
{
    int64_t after_ns = p->rate > 0 ? 0 : p->until_ns - clock_now_ns();

    if (!loop_is_current(server_pause_loop(p)))
        return;
    loop_cancel(server_pause_loop(p), &p->timer);
    loop_schedule(server_pause_loop(p), &p->timer, after_ns > 0 ? after_ns : 0);
}

int server_pause_begin(struct server *sv, const struct server_pause_target *target,
                       const struct server_pause_conf *conf)
{
    struct server_pause *p = server_pause_find(sv, target);
    int rc = p ? 0 : server_pause_create(&p, sv, target);

    if (rc < 0)
        return rc;
    lock_take(&sv->pauses_lock);
    p->rate = 0;
    p->max_held = conf->max_held;
    p->until_ns = clock_add_ns(clock_now_ns(), conf->for_ns);
    lock_release(&sv->pauses_lock);
    if (p->listener)
        hold_close(p->hold);
    else
        upstream_pause(p->upstream, conf->max_held, p->until_ns);
    server_pause_time(p);
    return 0;
}

static bool server_pause_exists(const struct server *sv, const struct server_pause_target *target)
{
    struct listener *ls;

    if (target->upstream)
        return upstreams_configured(sv->upstreams, target->upstream, strlen(target->upstream));
    ls = listeners_lookup(sv->listeners, target->listener);
    if (ls)
        listener_release(ls);
    return ls != NULL;
}

int server_pause_resume(struct server *sv, const struct server_pause_target *target, unsigned rate)
{
    struct server_pause *p = server_pause_find(sv, target);

    if (!p)
        return server_pause_exists(sv, target) ? -EALREADY : -ENOENT;
    if (rate == 0) {
        loop_cancel(server_pause_loop(p), &p->timer);
        server_pause_end(p);
        return 0;
    }
    lock_take(&sv->pauses_lock);
    p->rate = rate;
    lock_release(&sv->pauses_lock);
    p->due = 0;
    p->allowed = p->idle_ticks = 0;
    server_pause_time(p);
    return 0;
}

static bool server_pause_is_kept(const struct server_pause *p, const struct server_conf *conf)
{
    for (unsigned i = 0; p->listener && i < conf->n_listeners; i++)
        if (strcmp(conf->listeners[i].name, listener_name(p->listener)) == 0)
            return true;
    for (unsigned i = 0; p->upstream && i < conf->n_upstreams; i++)
        if (strcmp(conf->upstreams[i].name, p->upstream->name) == 0)
            return true;
    return false;
}

void server_pause_end_removed(struct server *sv, const struct server_conf *conf)
{
    list_for_each_safe (node, &sv->pauses) {
        struct server_pause *p = LIST_ENTRY(node, struct server_pause, link);

        if (server_pause_is_kept(p, conf))
            continue;
        loop_cancel(server_pause_loop(p), &p->timer);
        server_pause_end(p);
    }
}

void server_pause_start(struct server *sv)
{
    list_for_each (node, &sv->pauses)
        server_pause_time(LIST_ENTRY(node, struct server_pause, link));
}

void server_pause_each(struct server *sv,
                       void (*visit)(void *cookie, const struct server_pause_status *pause),
                       void *cookie)
{
    lock_take(&sv->pauses_lock);
    list_for_each (node, &sv->pauses) {
        const struct server_pause *p = LIST_ENTRY(node, struct server_pause, link);

        visit(cookie, &(struct server_pause_status){
                          .target = {.listener = p->listener ? listener_name(p->listener) : NULL,
                                     .upstream = p->upstream ? p->upstream->name : NULL},
                          .until_ns = p->until_ns,
                          .max_held = p->max_held,
                          .rate = p->rate});
    }
    lock_release(&sv->pauses_lock);
}

bool server_pause_is_any(const struct server *sv)
{
    return atomic_load_explicit(&sv->n_pauses, memory_order_relaxed) > 0;
}

void server_pause_free_all(struct server *sv)
{
    list_for_each_safe (node, &sv->pauses)
        server_pause_free(LIST_ENTRY(node, struct server_pause, link));
}
