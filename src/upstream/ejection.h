/*
 * upstream/ejection: keeping sessions away for a while from an endpoint where they fail.
 *
 * Passive: nothing is sent to find out, only what becomes of sessions is counted. After so many
 * failures in a row an endpoint is marked ENDPOINT_EJECTED, for longer each time in succession.
 * Then it gets sessions again, and the next one that fails counts as the first. No more than a part
 * of a group is out at a time: what is wrong with most servers is likely wrong with us.
 *
 * No timer of its own: when the time of some endpoint is over, the next pick of the group lets it
 * return (and, where somebody may wait for that, upstream/upstream sees to it).
 */
#ifndef UPSTREAM_EJECTION_H
#define UPSTREAM_EJECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "upstream/endpoint.h"

struct ejection_conf {
    unsigned failures;   /* in a row; 0: never eject */
    int64_t time_ns;     /* the first time, and as much more each time after that */
    int64_t time_max_ns; /* never longer; an endpoint that went well for so long begins anew */
    unsigned max_percent;
    bool resets; /* a reset before the server's first byte is a failure, too */
};

/* Of a group. */
struct ejection_group {
    const struct ejection_conf *conf;
    atomic_uint n_endpoints;
    atomic_uint n_out;
    _Atomic int64_t
        next_return_at_ns; /* no endpoint returns before; CLOCK_NEVER when none is out */
};

/* Of an endpoint. */
enum ejection_state { EJECTION_IN, EJECTION_OUT, EJECTION_CLAIMED /* about to become the other */ };

struct ejection {
    atomic_uint failures; /* in a row */
    /*
     * note: claim. Whoever lets the endpoint out or back in claims it first (acquire) and gives it
     * back with its new state (release): one at a time, to whom alone belongs what is below. Who
     * comes in between leaves it alone.
     */
    atomic_int state; /* enum ejection_state */
    unsigned times;   /* in succession */
    int64_t returns_at_ns;
};

/*
 * ejection_group_init(g, conf, n_endpoints):
 * None is out.
 *
 * Thread: before start
 * Owns:   ${conf} is borrowed
 */
void ejection_group_init(struct ejection_group *g, const struct ejection_conf *conf,
                         unsigned n_endpoints);

/*
 * ejection_group_resize(g, n_endpoints):
 * The group has so many endpoints from now on.
 *
 * Thread: one
 */
void ejection_group_resize(struct ejection_group *g, unsigned n_endpoints);

/*
 * ejection_worked(x) / ejection_failed(g, x, e, now_ns, others):
 * A session at ${e} went well, or failed. For how long ${e} is out from now on; 0: it is not, or
 * was before. Without ${others} of the group that are fit it stays, for nobody could be sent
 * anywhere.
 *
 * Thread: any
 * Units:  ns
 */
void ejection_worked(struct ejection *x);
int64_t ejection_failed(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                        int64_t now_ns, bool others);

/*
 * ejection_some_out(g) / ejection_due(g, now_ns):
 * Is some endpoint out? May one return?
 *
 * Thread: any
 */
static inline bool ejection_some_out(const struct ejection_group *g)
{
    return atomic_load_explicit(&g->n_out, memory_order_relaxed) > 0;
}

static inline bool ejection_due(const struct ejection_group *g, int64_t now_ns)
{
    return atomic_load_explicit(&g->next_return_at_ns, memory_order_relaxed) <= now_ns;
}

/*
 * ejection_sweep_begin(g) / ejection_return(g, x, e, now_ns):
 * For each endpoint of a group in which one is due: let it return if its time is over. True if it
 * does now.
 *
 * Thread: any
 */
void ejection_sweep_begin(struct ejection_group *g);
bool ejection_return(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                     int64_t now_ns);

/*
 * ejection_forget(g, x, e):
 * ${e} is back, whatever its time: there is news of it, or it leaves the group. True if it was out.
 *
 * Thread: any
 */
bool ejection_forget(struct ejection_group *g, struct ejection *x, struct endpoint *e);

#endif
