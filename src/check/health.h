/*
 * check/health: state machine of health checks: up or down, and when the next check is due.
 *
 *         fall failures in a row                      rise successes in a row
 *   UP ---------------------------> DOWN       DOWN -------------------------> UP
 *
 * Servers begin UP (as in HAProxy, where also one failure is enough while the state is unknown),
 * DOWN, or CHECKED: down until the first check decides. This code uses no clock or sockets.
 */
#ifndef CHECK_HEALTH_H
#define CHECK_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

enum health_initial {
    HEALTH_STARTS_UP,
    HEALTH_STARTS_DOWN,
    HEALTH_STARTS_CHECKED,
    HEALTH_STARTS_KNOWN_UP /* up, as checks have found before; not an option */
};

struct health_conf {
    enum health_initial initial; /* of a new server */
    unsigned rise;
    unsigned fall;
    int64_t interval_ns;      /* from the start of a check to the next */
    int64_t fast_interval_ns; /* while a streak may change the state; 0: interval_ns */
    unsigned jitter_percent;  /* longest jitter, percent of the interval */
};

struct health {
    const struct health_conf *conf;
    uint64_t random;
    unsigned streak;     /* checks in a row that contradict is_up */
    unsigned changed_by; /* checks in a row that made the last change */
    bool is_up;
    bool is_decided; /* is_up is known, from a check or the initial state */
    bool is_known;   /* is_up is known, from a check */
    int64_t since_at_ns;
};

/* STAYS_DOWN: the first check of a CHECKED server failed. */
enum health_change { HEALTH_SAME, HEALTH_CAME_UP, HEALTH_WENT_DOWN, HEALTH_STAYS_DOWN };

/*
 * health_init(h, conf, initial, seed, now_ns) / health_use(h, conf):
 * Initialize as ${initial}, with ${seed} for the jitter / use the thresholds and intervals of
 * ${conf}, keep state and streak.
 *
 * Thread: owner of ${h}
 * Owns:   ${conf} must live until health_use() replaces it
 */
void health_init(struct health *h, const struct health_conf *conf, enum health_initial initial,
                 uint64_t seed, int64_t now_ns);
void health_use(struct health *h, const struct health_conf *conf);

/*
 * health_report(h, passed, now_ns):
 * Record that a check passed or failed, and return the change. Leave out undecided checks.
 *
 * Thread: owner of ${h}
 */
enum health_change health_report(struct health *h, bool passed, int64_t now_ns);

/*
 * health_first_ns(conf, nth):
 * Delay of the first check of server ${nth} (from 0), below an interval. Spreads any number of
 * servers evenly.
 *
 * Source: multiples of the golden ratio (Weyl 1916; three-gap theorem, Sos 1958)
 */
int64_t health_first_ns(const struct health_conf *conf, uint64_t nth);

/*
 * health_interval_ns(h):
 * Time from check to check, with new jitter each call.
 *
 * Thread: owner of ${h}
 */
int64_t health_interval_ns(struct health *h);

#endif
