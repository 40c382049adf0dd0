/*
 * daemon/syscall_filter: seccomp: allows only the system calls that a running reactord needs.
 *
 * Other calls fail with EPERM, and the kernel logs them. No program can be executed, no process
 * started, no memory written to and executed, and sockets are IPv4, IPv6 or unix. The filter stays
 * until the process ends.
 */
#ifndef DAEMON_SYSCALL_FILTER_H
#define DAEMON_SYSCALL_FILTER_H

#include "base/must.h"

/*
 * syscall_filter_load():
 * Apply the filter to this thread and the threads that it creates. Failures are logged.
 *
 * Thread: main, before any other thread, when privileges are dropped
 * Errors: 0; -ENOMEM; -ECANCELED (refused by the kernel); -EINVAL (not supported)
 * Source: seccomp(2), seccomp_rule_add(3)
 */
int syscall_filter_load(void) NODISCARD;

#endif
