/* server/server_watch: the watchdog of the loops. See server.h. */
#include "server/server_internal.h"
#include "server/threads.h"
#include "sessions/rebalance.h"

void server_add_loop(struct server *sv, struct loop *loop)
{
    threads_add(&sv->threads, loop);
}

bool server_watch(struct server *sv)
{
    rebalance_notice(sv->rebalance);
    autoscale_look(&sv->autoscale, sv->threads.workers, atomic_load(&sv->scale_min),
                   atomic_load(&sv->scale_max));
    return threads_watch(&sv->threads);
}

int64_t server_watch_interval_ns(const struct server *sv)
{
    return threads_watch_interval_ns(&sv->threads);
}

bool server_doze(struct server *sv)
{
    if (!atomic_load(&sv->draining) && autoscale_is_settling(&sv->autoscale))
        return false;
    return threads_doze(&sv->threads);
}

int server_watch_fd(const struct server *sv)
{
    return threads_watch_fd(&sv->threads);
}
