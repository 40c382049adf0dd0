/* engine/placement: see placement.h. */
#include "engine/placement.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

void placement_note(struct placement *p, const struct placement_conf *conf)
{
    p->conf = *conf;
    p->knows_cpus = sched_getaffinity(0, sizeof(p->cpus), &p->cpus) == 0;
    p->policy = sched_getscheduler(0);
}

static void placement_pin(const struct placement *p, const char *name)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(p->conf.cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        log_warning("thread %s: cannot stay on processor %u: %s", name, p->conf.cpu,
                    strerror(errno));
}

/* Between SCHED_OTHER and SCHED_BATCH, and no others; see note: who waits on a busy processor. */
static void placement_schedule(const struct placement *p, const char *name)
{
    bool is_batch = p->conf.scheduling == PLACEMENT_BATCH;
    struct sched_param none = {.sched_priority = 0};
    int policy = is_batch ? SCHED_BATCH : SCHED_OTHER, now = sched_getscheduler(0);

    if (p->policy != SCHED_OTHER || now == policy || (now != SCHED_OTHER && now != SCHED_BATCH))
        return;
    if (sched_setscheduler(0, policy, &none) < 0)
        log_info("thread %s: cannot have %s: %s", name, is_batch ? "SCHED_BATCH" : "SCHED_OTHER",
                 strerror(errno));
}

void placement_take(const struct placement *p, const char *name)
{
    if (p->knows_cpus) /* should they be forbidden by now, it stays on those of who started it */
        (void)sched_setaffinity(0, sizeof(p->cpus), &p->cpus);
    if (p->conf.pinned)
        placement_pin(p, name);
    placement_schedule(p, name);
}
