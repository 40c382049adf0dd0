/* daemon/lookout: see lookout.h. */
#include "daemon/lookout.h"

#include "base/clock.h"
#include "base/log.h"
#include "daemon/notify.h"
#include "server/server.h"

void lookout_start(struct lookout *lookout, struct server *server)
{
    int64_t watch_ns = server_watch_interval_ns(server);
    int64_t feed_ns = notify_watchdog_interval_ns();
    int64_t look_ns = watch_ns < feed_ns ? watch_ns : feed_ns;
    int64_t now_ns = clock_now_ns();

    *lookout = (struct lookout){
        .server = server,
        .look_every_ns = look_ns,
        .look_at_ns = look_ns == CLOCK_NEVER ? CLOCK_NEVER : now_ns,
        .feed_every_ns = feed_ns,
        .feed_at_ns = feed_ns == CLOCK_NEVER ? CLOCK_NEVER : now_ns,
    };
}

int64_t lookout_due_at_ns(const struct lookout *lookout)
{
    return lookout->look_at_ns;
}

static void feed(struct lookout *lookout, int64_t now_ns)
{
    notify_watchdog();
    lookout->feed_at_ns = clock_add_ns(now_ns, lookout->feed_every_ns);
    if (lookout->withheld)
        log_notice("systemd's watchdog is fed again");
    lookout->withheld = false;
}

static void withhold(struct lookout *lookout)
{
    if (!lookout->withheld)
        log_warning("systemd's watchdog is not fed while a loop stalls");
    lookout->withheld = true;
}

void lookout_look(struct lookout *lookout)
{
    int64_t now_ns = clock_now_ns();
    bool turning;

    if (now_ns < lookout->look_at_ns)
        return;
    turning = server_watch(lookout->server);
    lookout->look_at_ns = clock_add_ns(now_ns, lookout->look_every_ns);
    if (lookout->look_at_ns <= lookout->feed_at_ns)
        return; /* the next look is early enough */
    if (turning)
        feed(lookout, now_ns);
    else
        withhold(lookout);
}
