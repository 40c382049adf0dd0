#include <string.h>

#include "base/log.h"
#include "engine/loop_group.h"
#include "server/server_internal.h"

unsigned server_client_descriptors(const struct server_conf *conf)
{
    for (unsigned i = 0; i < conf->n_listeners; i++)
        if (conf->listeners[i].service == LISTENER_PROXY)
            return 2;
    return 1;
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
