#include "sessions/eviction.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop_group.h"
#include "engine/visit.h"
#include "service/session.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"
#include "upstream/upstream.h"

struct eviction_part {
    struct session_set_walk walk;
    unsigned left;   /* sessions still to end in this tick */
    unsigned resets; /* sessions that were connected */
};

struct eviction {
    const char *upstream;           /* behind the parts */
    struct upstream_server *server; /* holds a reference */
    struct worker **workers;
    bool of_backup;
    int64_t began_at_ns;
    unsigned max_each_tick;
    int64_t tick_ns;
    struct visit visit;
    struct eviction_part *parts; /* behind the visited ones */
    struct visit_part visited[];
};

static bool eviction_visit(const struct eviction *ev, struct eviction_part *part, struct session *s)
{
    bool is_connected = s->phase != SESSION_PHASE_CONNECTING; /* else it gets another server */

    if (s->phase >= SESSION_PHASE_CLOSING || !s->service->ops->evict ||
        !s->service->ops->evict(s, ev->server, ev->began_at_ns,
                                ev->of_backup ? SESSION_DRAIN : SESSION_SERVER_DOWN))
        return false;
    part->resets += is_connected;
    return true;
}

/* Visit some sessions; false if all were visited. */
static bool eviction_visit_some(const struct eviction *ev, struct eviction_part *part)
{
    struct budget step;
    bool ended;

    session_set_step_begin(&step);
    do {
        struct session *s = session_set_next(&part->walk);

        if (!s)
            return false;
        ended = eviction_visit(ev, part, s);
        part->left -= ended;
    } while (!budget_step_over(&step, ended) && part->left > 0);
    return true;
}

/* A server that is removed is no longer checked: it counts as down until it returns. */
static bool eviction_goes_on(const struct eviction *ev)
{
    if (ev->of_backup)
        return !endpoint_is_in_use(&ev->server->endpoint);
    return endpoint_load(&ev->server->endpoint) & (ENDPOINT_ANY_DOWN | ENDPOINT_ABSENT);
}

static void eviction_end_part(void *cookie, unsigned i)
{
    struct eviction *ev = cookie;

    session_set_end(&ev->parts[i].walk);
}

static int64_t eviction_step(void *cookie, unsigned i)
{
    struct eviction *ev = cookie;
    struct eviction_part *part = &ev->parts[i];

    if (!session_set_walks(&part->walk))
        session_set_begin(&part->walk, worker_sessions(ev->workers[i]));
    if (part->left == 0)
        part->left = ev->max_each_tick;
    if (!eviction_goes_on(ev) || !eviction_visit_some(ev, part)) {
        eviction_end_part(ev, i);
        return VISIT_OVER;
    }
    return part->left == 0 ? ev->tick_ns : VISIT_NEXT_TURN;
}

static void eviction_done(void *cookie)
{
    struct eviction *ev = cookie;
    unsigned resets = 0;

    for (unsigned i = 0; i < ev->visit.n_parts; i++)
        resets += ev->parts[i].resets;
    if (resets > 0)
        log_event(LOG_SERVER, LOG_LEVEL_NOTICE, "upstream %s: server %s: %s: connections reset: %u",
                  ev->upstream, ev->server->name, ev->of_backup ? "not in use any more" : "down",
                  resets);
    upstream_server_release(ev->server);
    free(ev);
}

/* LOOP_CONTROL: before queued tasks. A lost worker has ended, with all its sessions. */
static const struct visit_ops eviction_ops = {.task = VISIT_TASK("end sessions of a server"),
                                              .first = LOOP_CONTROL,
                                              .is_exact = true,
                                              .step = eviction_step,
                                              .lost = eviction_end_part,
                                              .done = eviction_done};

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
    struct eviction *ev =
        calloc(1, sizeof(*ev) + n * (sizeof(ev->visited[0]) + sizeof(ev->parts[0])) +
                      strlen(conf->upstream) + 1);

    if (!ev)
        return -ENOMEM;
    ev->server = conf->server;
    upstream_server_hold(ev->server);
    ev->of_backup = conf->of_backup;
    ev->began_at_ns = clock_now_ns();
    eviction_pace(ev, conf, n);
    ev->workers = conf->workers;
    ev->parts = (void *)&ev->visited[n];
    ev->upstream = strcpy((char *)&ev->parts[n], conf->upstream);
    for (unsigned i = 0; i < n; i++)
        session_set_walk_init(&ev->parts[i].walk);
    visit_init(&ev->visit, &eviction_ops, ev, ev->visited, n);
    visit_begin(&ev->visit, conf->loops, n);
    return 0;
}
