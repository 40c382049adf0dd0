/*
 * balance/ejection: passive outlier detection: eject endpoints where sessions fail.
 *
 * Failures in a row set ENDPOINT_EJECTED, each time for longer. After an ejection, failures count
 * from zero. At most max_percent of a group is ejected: if most servers fail, the cause is likely
 * on our side.
 *
 * The next pick ends ejections whose time is over (for waiting sessions upstream/upstream sets a
 * timer).
 */
#ifndef BALANCE_EJECTION_H
#define BALANCE_EJECTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "balance/endpoint.h"

struct ejection_conf {
    unsigned failures;   /* in a row that eject; 0: never eject */
    int64_t time_ns;     /* ejection time, multiplied by the number of successive ejections */
    int64_t time_max_ns; /* longest ejection; after as long without one, the multiplier restarts */
    unsigned max_percent;
    bool resets; /* a reset before the first byte is a failure */
};

struct ejection_group {
    _Atomic(const struct ejection_conf *) conf;
    atomic_uint n_endpoints;
    atomic_uint n_out;
    _Atomic int64_t next_return_at_ns; /* earliest return; CLOCK_NEVER when none is ejected */
};

enum ejection_state { EJECTION_IN, EJECTION_OUT, EJECTION_CLAIMED /* see note: claim */ };

struct ejection {
    atomic_uint failures;      /* in a row */
    atomic_uint ejected_after; /* failures in a row at the last ejection */
    /*
     * note: claim. To eject or return an endpoint, claim it (acquire), then store the new state
     * (release). The members below `state` belong to the claimer; other threads skip the endpoint.
     */
    atomic_int state;
    unsigned times; /* successive ejections */
    int64_t returns_at_ns;
};

/* An ejection, for another process. */
struct ejection_past {
    int64_t returns_at_ns;
    unsigned times;
};

/*
 * ejection_group_init(g, conf, n_endpoints):
 * Initialize ${g} without ejected endpoints.
 *
 * Thread: any, before other threads can use ${g}
 * Owns:   ${conf} must live until a grace period after ejection_group_use() replaces it
 */
void ejection_group_init(struct ejection_group *g, const struct ejection_conf *conf,
                         unsigned n_endpoints);

/*
 * ejection_group_resize(g, n_endpoints) / ejection_group_use(g, conf):
 * Set the number of endpoints / replace the configuration. Ejected endpoints keep their return
 * time.
 *
 * Thread: any, one at a time
 * Owns:   as ejection_group_init()
 */
void ejection_group_use(struct ejection_group *g, const struct ejection_conf *conf);
void ejection_group_resize(struct ejection_group *g, unsigned n_endpoints);

/*
 * ejection_worked(x) / ejection_failed(g, x, e, now_ns, others):
 * Record a success / record a failure; return the ejection time in ns if that ejects ${e}, else 0.
 * ${others}: another endpoint is fit; if not, ${e} stays.
 */
void ejection_worked(struct ejection *x);
int64_t ejection_failed(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                        int64_t now_ns, bool others);

/*
 * ejection_some_out(g) / ejection_due(g, now_ns):
 * Is an endpoint ejected? / may an ejection be over?
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
 * When ejection_due(): begin a sweep / then, for each endpoint ${e}, end its ejection if the time
 * is over; true if it ended.
 */
void ejection_sweep_begin(struct ejection_group *g);
bool ejection_return(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                     int64_t now_ns);

/* ejection_cancel(g, x, e): end the ejection of ${e} early. True if it was ejected. */
bool ejection_cancel(struct ejection_group *g, struct ejection *x, struct endpoint *e);

/*
 * ejection_get(g, x, out) / ejection_restore(g, x, e, past, now_ns):
 * Copy the ejection of an endpoint; false: it is not ejected / eject ${e} as another process has
 * done, which has observed max_percent, unless the ejection is over.
 *
 * Thread: any / any, before sessions can pick ${e}
 */
bool ejection_get(struct ejection_group *g, struct ejection *x, struct ejection_past *out);
void ejection_restore(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                      const struct ejection_past *past, int64_t now_ns);

#endif
