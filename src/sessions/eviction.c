#include "sessions/eviction.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "service/session.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"
#include "upstream/upstream.h"

struct eviction_part {
    struct timer tick;
    struct eviction *eviction;
    struct loop *loop;
    struct worker *worker;
    struct session_set_walk walk;
    unsigned left; /* sessions still to end in this tick */
};

struct eviction {
    struct upstream_server *server; /* holds a reference */
    int64_t began_at_ns;
    unsigned max_each_tick;
    int64_t tick_ns;
    atomic_uint parts_left; /* parts under way, plus one in eviction_begin(); 0: freed */
    struct eviction_part parts[];
};

static void eviction_release(struct eviction *ev)
{
    if (atomic_fetch_sub_explicit(&ev->parts_left, 1, memory_order_acq_rel) != 1)
        return;
    upstream_server_release(ev->server);
    free(ev);
}

static struct eviction_part *eviction_part_of(struct task *t)
{
    return TIMER_OWNER(t, struct eviction_part, tick);
}

static bool eviction_visit(const struct eviction *ev, struct session *s)
{
    return s->phase < SESSION_PHASE_CLOSING && s->service->ops->evict &&
           s->service->ops->evict(s, ev->server, ev->began_at_ns);
}

/* Visit some sessions; false if all were visited. */
static bool eviction_step(struct eviction_part *part)
{
    struct budget step;
    bool ended;

    session_set_step_begin(&step);
    do {
        struct session *s = session_set_next(&part->walk);

        if (!s)
            return false;
        ended = eviction_visit(part->eviction, s);
        part->left -= ended;
    } while (!budget_step_over(&step, ended) && part->left > 0);
    return true;
}

static void eviction_end_part(struct eviction_part *part)
{
    session_set_end(&part->walk);
    eviction_release(part->eviction);
}

/* A server that is removed is no longer checked: it counts as down until it returns. */
static bool eviction_goes_on(const struct eviction *ev)
{
    return endpoint_load(&ev->server->endpoint) & (ENDPOINT_DOWN | ENDPOINT_ABSENT);
}

static void eviction_run_tick(struct task *t)
{
    struct eviction_part *part = eviction_part_of(t);
    struct eviction *ev = part->eviction;

    if (!session_set_walks(&part->walk))
        session_set_begin(&part->walk, worker_sessions(part->worker));
    if (part->left == 0)
        part->left = ev->max_each_tick;
    if (!eviction_goes_on(ev) || !eviction_step(part))
        eviction_end_part(part);
    else if (part->left == 0)
        loop_schedule(part->loop, &part->tick, ev->tick_ns);
    else if (loop_submit(part->loop, LOOP_TAIL, t) < 0)
        eviction_end_part(part);
}

static void eviction_drop_tick(struct task *t)
{
    eviction_end_part(eviction_part_of(t)); /* the worker has ended, with all its sessions */
}

static const struct task_type eviction_tick_type = {
    .name = "end sessions of a server", .run = eviction_run_tick, .drop = eviction_drop_tick};

/* Set the number of sessions per worker and tick, and the length of a tick. */
static void eviction_pace(struct eviction *ev, const struct eviction_conf *conf, unsigned n)
{
    uint64_t each = (uint64_t)conf->rate * EVICTION_TICK_NS / NS_PER_S / n;

    ev->max_each_tick = conf->rate > 0 ? (unsigned)(each > 0 ? each : 1) : UINT32_MAX;
    ev->tick_ns = conf->rate > 0 ? ev->max_each_tick * NS_PER_S * n / conf->rate : EVICTION_TICK_NS;
}

int eviction_begin(const struct eviction_conf *conf)
{
    unsigned n = loop_group_size(conf->loops);
    struct eviction *ev = calloc(1, sizeof(*ev) + n * sizeof(ev->parts[0]));

    if (!ev)
        return -ENOMEM;
    ev->server = conf->server;
    upstream_server_hold(ev->server);
    ev->began_at_ns = clock_now_ns();
    eviction_pace(ev, conf, n);
    atomic_init(&ev->parts_left, n + 1);
    for (unsigned i = 0; i < n; i++) {
        struct eviction_part *part = &ev->parts[i];

        part->eviction = ev;
        part->loop = loop_group_at(conf->loops, i);
        part->worker = conf->workers[i];
        session_set_walk_init(&part->walk);
        timer_init(&part->tick, &eviction_tick_type);
        /* Loops without a thread have no sessions. LOOP_CONTROL: before queued tasks. */
        if (loop_state(part->loop) == LOOP_NOT_STARTED ||
            loop_submit(part->loop, LOOP_CONTROL, &part->tick.task) < 0)
            eviction_release(ev);
    }
    eviction_release(ev);
    return 0;
}
