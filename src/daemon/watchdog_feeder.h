/*
 * daemon/watchdog_feeder: checks the loops for stalls and feeds systemd's watchdog.
 *
 * One timer serves both: the last check within half of systemd's timeout feeds it, without a
 * wake-up of its own. A stall withholds the feed until the first check after it; if the timeout
 * passes first, systemd restarts reactord.
 */
#ifndef DAEMON_WATCHDOG_FEEDER_H
#define DAEMON_WATCHDOG_FEEDER_H

#include <stdbool.h>
#include <stdint.h>

struct server;

/* Embedded; private to watchdog_feeder_...(). */
struct watchdog_feeder {
    struct server *server;
    int64_t look_every_ns; /* CLOCK_NEVER: neither stall checks nor a watchdog */
    int64_t look_at_ns;
    int64_t feed_every_ns; /* CLOCK_NEVER: no watchdog */
    int64_t feed_at_ns;    /* at the latest */
    bool withheld;         /* overdue because of a stall, and logged */
};

/*
 * watchdog_feeder_start(watchdog_feeder, server):
 * Set the intervals of the stall check and of systemd's watchdog; the first check is due at once.
 *
 * Thread: main
 * Owns:   nothing; ${server} is started, and not used after server_stop()
 */
void watchdog_feeder_start(struct watchdog_feeder *watchdog_feeder, struct server *server);

/*
 * watchdog_feeder_due_at_ns(watchdog_feeder):
 * Return when to call watchdog_feeder_look(); CLOCK_NEVER: never.
 *
 * Thread: main
 */
int64_t watchdog_feeder_due_at_ns(const struct watchdog_feeder *watchdog_feeder);

/*
 * watchdog_feeder_look(watchdog_feeder):
 * When due, check the loops and feed or withhold.
 *
 * Thread: main
 */
void watchdog_feeder_look(struct watchdog_feeder *watchdog_feeder);

#endif
