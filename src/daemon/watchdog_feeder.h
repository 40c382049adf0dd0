/*
 * daemon/watchdog_feeder: the main thread looks whether all loops turn, and feeds systemd's
 * watchdog as long as they do.
 *
 * One timer serves both. systemd's watchdog is fed with the last look before half of its period is
 * over, so that it costs no wake-up of its own. While a loop stalls it is not fed, and with the
 * first look after that it is; a loop that stalls until the period is over has reactord ended, and
 * started again, by systemd.
 */
#ifndef DAEMON_WATCHDOG_FEEDER_H
#define DAEMON_WATCHDOG_FEEDER_H

#include <stdbool.h>
#include <stdint.h>

struct server;

/* To be embedded; only watchdog_feeder_...() look in here. */
struct watchdog_feeder {
    struct server *server;
    int64_t look_every_ns; /* CLOCK_NEVER: neither stalls are looked for nor does systemd wait */
    int64_t look_at_ns;
    int64_t feed_every_ns; /* CLOCK_NEVER: systemd does not wait */
    int64_t feed_at_ns;    /* at the latest */
    bool withheld;         /* it was due and not fed, and that was logged */
};

/*
 * watchdog_feeder_start(lookout, server):
 * Ask the server and the service manager how often they want it; the first look is due at once.
 *
 * Thread: main
 * Owns:   nothing; ${server} is started, and not looked at after server_stop()
 */
void watchdog_feeder_start(struct watchdog_feeder *watchdog_feeder, struct server *server);

/*
 * watchdog_feeder_due_at_ns(lookout):
 * When to call watchdog_feeder_look(); CLOCK_NEVER: never.
 *
 * Thread: main
 * Units:  an instant of clock_now_ns()
 */
int64_t watchdog_feeder_due_at_ns(const struct watchdog_feeder *watchdog_feeder);

/*
 * watchdog_feeder_look(lookout):
 * If it is due: look at the loops, and feed or withhold.
 *
 * Thread: main
 */
void watchdog_feeder_look(struct watchdog_feeder *watchdog_feeder);

#endif
