/* base/cpu_quota: CPU quota of this process's control groups (cgroup v1 and v2). */
#ifndef BASE_CPU_QUOTA_H
#define BASE_CPU_QUOTA_H

#include <stdint.h>

#include "base/must.h"

struct cpu_quota {
    uint64_t quota_us; /* 0: no limit */
    uint64_t period_us;
};

/*
 * cpu_quota_read(proc):
 * Lowest limit of the process's group and its mounted ancestors; a limit that cannot be read is
 * ignored. ${proc} is "/proc/self", or a directory with `cgroup` and `mountinfo`.
 *
 * Units:  microseconds of CPU time in a period
 * Source: cgroups(7); Linux Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst
 */
struct cpu_quota cpu_quota_read(const char *proc) NODISCARD;

/*
 * cpu_quota_threads(q, per_cpu):
 * ${per_cpu} threads for each CPU of the quota, rounded up; UINT_MAX without a quota.
 */
unsigned cpu_quota_threads(const struct cpu_quota *q, unsigned per_cpu);

#endif
