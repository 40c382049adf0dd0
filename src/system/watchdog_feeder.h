/*
 * system/watchdog_feeder: stall checks of the loops, and systemd's watchdog.
 *
 * One timer serves both: the last check before half of systemd's timeout feeds the watchdog, unless
 * a loop is stalled. While no loop runs, only systemd's watchdog needs the timer.
 */
#ifndef SYSTEM_WATCHDOG_FEEDER_H
#define SYSTEM_WATCHDOG_FEEDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct server;

/* A check that is so late logs only that: the loops did not run either. The next one judges. */
#define WATCHDOG_FEEDER_AWAY_NS (1 * NS_PER_S)

struct watchdog_feeder {
    struct server *server;
    int64_t look_every_ns; /* CLOCK_NEVER: neither stall checks nor a watchdog */
    int64_t look_at_ns;    /* CLOCK_NEVER: when a loop runs */
    bool dozes;            /* server_doze() */
    int64_t feed_every_ns; /* CLOCK_NEVER: no watchdog */
    int64_t feed_at_ns;    /* latest time to feed the watchdog */
    bool was_away;         /* the last check was late by WATCHDOG_FEEDER_AWAY_NS */
    bool withheld;         /* the watchdog is not fed because of a stall, as logged */
};

/*
 * watchdog_feeder_start(watchdog_feeder, server):
 * Set the intervals of stall check and watchdog; the first check is due at once.
 *
 * Owns:   ${server} is started, and not used after server_stop()
 */
void watchdog_feeder_start(struct watchdog_feeder *watchdog_feeder, struct server *server);

/* watchdog_feeder_due_at_ns(watchdog_feeder): when to call watchdog_feeder_look(). */
int64_t watchdog_feeder_due_at_ns(const struct watchdog_feeder *watchdog_feeder);

/* watchdog_feeder_fd(watchdog_feeder): poll(2) it for watchdog_feeder_look(); -1: none. */
int watchdog_feeder_fd(const struct watchdog_feeder *watchdog_feeder);

/*
 * watchdog_feeder_look(watchdog_feeder, is_woken):
 * If due, check the loops, and feed the watchdog unless a loop is stalled. If the check is late by
 * WATCHDOG_FEEDER_AWAY_NS, log that in its place, or if the check before was so late too, besides.
 * If ${is_woken}, watchdog_feeder_fd() was readable: check again from now on.
 */
void watchdog_feeder_look(struct watchdog_feeder *watchdog_feeder, bool is_woken);

#endif
