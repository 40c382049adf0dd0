#include "system/watchdog_feeder.h"

#include "base/clock.h"
#include "base/log.h"
#include "system/notify.h"
#include "server/server.h"

void watchdog_feeder_start(struct watchdog_feeder *watchdog_feeder, struct server *server)
{
    int64_t watch_ns = server_watch_interval_ns(server);
    int64_t feed_ns = notify_watchdog_interval_ns();
    int64_t look_ns = watch_ns < feed_ns ? watch_ns : feed_ns;
    int64_t now_ns = clock_now_ns();

    *watchdog_feeder = (struct watchdog_feeder){
        .server = server,
        .look_every_ns = look_ns,
        .look_at_ns = look_ns == CLOCK_NEVER ? CLOCK_NEVER : now_ns,
        .feed_every_ns = feed_ns,
        .feed_at_ns = feed_ns == CLOCK_NEVER ? CLOCK_NEVER : now_ns,
    };
}

int64_t watchdog_feeder_due_at_ns(const struct watchdog_feeder *watchdog_feeder)
{
    return watchdog_feeder->look_at_ns;
}

int watchdog_feeder_fd(const struct watchdog_feeder *watchdog_feeder)
{
    return watchdog_feeder->dozes ? server_watch_fd(watchdog_feeder->server) : -1;
}

static void watchdog_feeder_feed(struct watchdog_feeder *watchdog_feeder, int64_t now_ns)
{
    notify_watchdog();
    watchdog_feeder->feed_at_ns = clock_add_ns(now_ns, watchdog_feeder->feed_every_ns);
    if (watchdog_feeder->withheld)
        log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "systemd's watchdog is fed again");
    watchdog_feeder->withheld = false;
}

static void watchdog_feeder_withhold(struct watchdog_feeder *watchdog_feeder)
{
    if (!watchdog_feeder->withheld)
        log_event(LOG_PROCESS, LOG_LEVEL_WARNING,
                  "a loop is stalled or runs no tasks: systemd's watchdog is not fed; unless the "
                  "loop recovers, systemd kills the process (WatchdogSec=)");
    watchdog_feeder->withheld = true;
}

static void watchdog_feeder_note_absence(int64_t late_ns)
{
    log_event(LOG_PROCESS, LOG_LEVEL_WARNING,
              "the main thread did not run for about %.1f s, as after a pause of the process or of "
              "its machine",
              (double)late_ns / (double)NS_PER_S);
}

/*
 * Do all loops turn? Loops that did not run either would seem stalled: the next look judges them,
 * late or not. A main thread that is always late must not hide a stalled loop.
 */
static bool watchdog_feeder_judge(struct watchdog_feeder *watchdog_feeder, int64_t late_ns)
{
    bool was_away = watchdog_feeder->was_away;

    watchdog_feeder->was_away = late_ns >= WATCHDOG_FEEDER_AWAY_NS;
    if (watchdog_feeder->was_away)
        watchdog_feeder_note_absence(late_ns);
    return (watchdog_feeder->was_away && !was_away) || server_watch(watchdog_feeder->server);
}

/* A turn has begun just now: it cannot be a stall before two intervals. */
static void watchdog_feeder_wake(struct watchdog_feeder *watchdog_feeder, int64_t now_ns)
{
    int64_t at_ns = clock_add_ns(now_ns, 2 * watchdog_feeder->look_every_ns);

    watchdog_feeder->dozes = false;
    watchdog_feeder->look_at_ns = clock_sooner(watchdog_feeder->look_at_ns, at_ns);
}

static void watchdog_feeder_doze(struct watchdog_feeder *watchdog_feeder)
{
    watchdog_feeder->dozes = server_doze(watchdog_feeder->server);
    if (watchdog_feeder->dozes)
        watchdog_feeder->look_at_ns = watchdog_feeder->feed_at_ns;
}

void watchdog_feeder_look(struct watchdog_feeder *watchdog_feeder, bool is_woken)
{
    int64_t now_ns = clock_now_ns(), late_ns;
    bool turning;

    if (is_woken)
        watchdog_feeder_wake(watchdog_feeder, now_ns);
    late_ns = now_ns - watchdog_feeder->look_at_ns;
    if (late_ns < 0)
        return;
    turning = watchdog_feeder_judge(watchdog_feeder, late_ns);
    watchdog_feeder->look_at_ns = clock_add_ns(now_ns, watchdog_feeder->look_every_ns);
    /* Otherwise the next check comes early enough to feed. */
    if (watchdog_feeder->look_at_ns > watchdog_feeder->feed_at_ns) {
        if (turning)
            watchdog_feeder_feed(watchdog_feeder, now_ns);
        else
            watchdog_feeder_withhold(watchdog_feeder);
    }
    watchdog_feeder_doze(watchdog_feeder);
}
