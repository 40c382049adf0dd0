/*
 * procstat: what a process has used up so far, read from /proc. A process that cannot be read is
 * fatal.
 */
#ifndef BENCH_PROCSTAT_H
#define BENCH_PROCSTAT_H

#include <stdint.h>
#include <sys/types.h>

/*
 * procstat_cpu_ns(pid):
 * CPU time, user and system, of all its threads. From schedstat, which counts nanoseconds; it lags
 * by a tick (4 ms at HZ=250) at most, /proc/PID/stat would count in whole ticks.
 */
uint64_t procstat_cpu_ns(pid_t pid);

/*
 * procstat_pss_kb(pid):
 * Resident memory in KiB, pages shared with other processes by their share. From smaps_rollup,
 * which walks the pages: VmRSS, read from per-CPU counters, may be some hundred KiB off.
 */
uint64_t procstat_pss_kb(pid_t pid);

#endif
