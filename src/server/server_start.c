#include <string.h>

#include "base/log.h"
#include "engine/loop_group.h"
#include "names/resolver.h"
#include "server/checks.h"
#include "server/server_internal.h"
#include "sessions/carry_over.h"
#include "sessions/workers.h"

unsigned server_client_descriptors(const struct server_conf *conf)
{
    for (unsigned i = 0; i < conf->n_listeners; i++)
        if (conf->listeners[i].service == LISTENER_PROXY)
            return 2;
    return 1;
}

struct descriptors_aside server_aside(const struct server *sv, const struct server_conf *conf,
                                      const struct upstream_next *next)
{
    unsigned names = resolver_names(next, conf->n_upstreams), threads = conf->executor.threads;

    return (struct descriptors_aside){
        .lookups = names < threads ? names : threads,
        .checks = checks_at_a_time(next, conf->n_upstreams, descriptors_checks_max()),
        .workers = loop_group_size(sv->threads.workers),
        .others = conf->set_aside};
}

int server_create_carry_over(struct server *sv)
{
    struct carry_over_conf carry_over = {.control = threads_control(&sv->threads),
                                         .boss = sv->threads.boss,
                                         .workers = sv->threads.workers,
                                         .list = workers_list(sv->workers)};

    return carry_over_create(&sv->carry_over, &carry_over);
}

int server_start_worker(struct server *sv)
{
    int rc = loop_group_start(sv->threads.workers);

    if (rc < 0)
        log_error("cannot start a worker thread: %s (ulimit -u; TasksMax= of the unit; pids.max of "
                  "the control group)",
                  strerror(-rc));
    return rc;
}
