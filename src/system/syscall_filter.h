/*
 * system/syscall_filter: seccomp: allows only the system calls that a running reactord needs.
 *
 * Other calls fail with EPERM (clone3(2): ENOSYS), and the kernel logs them. No program can be
 * executed, no process started, no written memory executed. Sockets are IPv4, IPv6 or unix. The
 * filter stays until the process ends.
 */
#ifndef SYSTEM_SYSCALL_FILTER_H
#define SYSTEM_SYSCALL_FILTER_H

#include "base/must.h"

/*
 * syscall_filter_load():
 * Apply the filter to this thread and the threads that it creates. Failures are logged.
 *
 * Thread: main, before any other thread, after privileges_drop()
 * Errors: 0; -ENOMEM; -errno of seccomp(2)
 * Source: seccomp(2), seccomp_rule_add(3)
 */
int syscall_filter_load(void) NODISCARD;

#endif
