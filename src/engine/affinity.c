#include "engine/affinity.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

void affinity_note(struct affinity *p, const struct affinity_conf *conf)
{
    p->conf = *conf;
    p->policy = sched_getscheduler(0);
}

static void affinity_pin(const struct affinity *p, const char *name)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(p->conf.cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        log_warning("thread %s: cannot be pinned to processor %u: %s", name, p->conf.cpu,
                    strerror(errno));
}

/* Set SCHED_BATCH if configured, else undo an inherited SCHED_BATCH; other policies are kept. */
static void affinity_schedule(const struct affinity *p, const char *name)
{
    bool is_batch = p->conf.scheduling == AFFINITY_BATCH;
    struct sched_param none = {.sched_priority = 0};
    int policy = is_batch ? SCHED_BATCH : SCHED_OTHER, now = sched_getscheduler(0);

    if (p->policy != SCHED_OTHER || now == policy || (now != SCHED_OTHER && now != SCHED_BATCH))
        return;
    if (sched_setscheduler(0, policy, &none) < 0)
        log_info("thread %s: cannot be scheduled as %s: %s", name,
                 is_batch ? "SCHED_BATCH" : "SCHED_OTHER", strerror(errno));
}

/* Use the main thread's processors; on an error keep the inherited ones. */
static void affinity_take_cpus(void)
{
    cpu_set_t cpus;

    if (sched_getaffinity(getpid(), sizeof(cpus), &cpus) == 0)
        (void)sched_setaffinity(0, sizeof(cpus), &cpus);
}

void affinity_take(const struct affinity *p, const char *name)
{
    affinity_take_cpus();
    if (p->conf.pinned)
        affinity_pin(p, name);
    affinity_schedule(p, name);
}
