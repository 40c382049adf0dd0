#include "sessions/worker_assign.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop_group.h"
#include "service/session.h"
#include "sessions/worker.h"

/* When all workers are full: pause of the boss, and interval of log lines. */
#define WORKER_ASSIGN_LOOK_NS (5 * NS_PER_MS)
#define WORKER_DEAL_LOG_NS    (10 * NS_PER_S)

/* For a client that a worker's loop has accepted. False: another thread has. */
static bool worker_assign_near(struct loop_group *workers, struct session *s)
{
    struct loop *loop = loop_group_near(workers);

    if (!loop)
        return false;
    if (loop_is_current(loop) || worker_hand_over(loop, s) < 0)
        worker_adopt(s);
    return true;
}

int worker_assign(struct loop_group *workers, struct session *s)
{
    int rc = -ESHUTDOWN;

    if (worker_assign_near(workers, s))
        return 0;

    for (unsigned i = 0; i < loop_group_in_use(workers) && rc < 0; i++) {
        struct loop *loop = s->service->rounds ? loop_group_next_in(workers, s->service->rounds)
                                               : loop_group_next(workers);

        if (!loop)
            break;
        rc = worker_hand_over(loop, s);
    }
    return rc;
}

const char *worker_assign_why(int error)
{
    return error == -EAGAIN ? "max_pending_tasks is reached, or no thread can be started"
                            : "the workers stop";
}

int64_t worker_assign_wait_ns(const struct loop_group *workers)
{
    static struct log_limit limit;
    unsigned suppressed;

    if (loop_group_availability(workers) != LOOP_FULL)
        return 0;
    if (log_allowed(&limit, WORKER_DEAL_LOG_NS, &suppressed))
        log_event_again(LOG_PROCESS, LOG_LEVEL_WARNING,
                        "workers: all are at max_pending_tasks: new clients wait%s",
                        LOG_SUPPRESSED(suppressed));
    return WORKER_ASSIGN_LOOK_NS;
}
