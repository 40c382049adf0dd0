/*
 * server/cpu_quota: the CPU time that the control groups of this process may use (cgroup v1 and
 * v2).
 */
#ifndef SERVER_CPU_QUOTA_H
#define SERVER_CPU_QUOTA_H

#include <stdint.h>

#include "base/must.h"

struct cpu_quota {
    uint64_t quota_us; /* 0: no limit */
    uint64_t period_us;
};

/*
 * cpu_quota_read(proc):
 * The lowest limit of the process's own group and those above it, as far as they are mounted. What
 * cannot be read counts as no limit. ${proc} is "/proc/self", or a directory that has its `cgroup`
 * and `mountinfo`.
 *
 * Thread: any
 * Units:  microseconds of CPU time in a period
 * Source: cgroups(7); Linux Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst
 */
struct cpu_quota cpu_quota_read(const char *proc) NODISCARD;

/*
 * cpu_quota_threads(q, per_cpu):
 * How many threads ${q} allows at ${per_cpu} for each CPU of the limit: rounded up, so at least 1;
 * UINT_MAX without a limit.
 *
 * Thread: any
 */
unsigned cpu_quota_threads(const struct cpu_quota *q, unsigned per_cpu);

#endif
