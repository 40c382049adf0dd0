/*
 * system/capabilities: keeps CAP_NET_BIND_SERVICE, to bind ports below 1024 without root, and what
 * socket options need.
 *
 * The functions apply to the calling thread and threads that it creates.
 */
#ifndef SYSTEM_CAPABILITIES_H
#define SYSTEM_CAPABILITIES_H

#include <linux/capability.h>
#include <stdbool.h>

#include "base/must.h"

/*
 * capabilities_survive_user(survive):
 * Set whether permitted capabilities survive the change from root to another user.
 *
 * Thread: main, before any other thread
 * Errors: 0; -EPERM (locked, see SECBIT_KEEP_CAPS_LOCKED)
 * Source: prctl(2), PR_SET_KEEPCAPS
 */
int capabilities_survive_user(bool survive) NODISCARD;

/* The capabilities that may be kept, as bits. */
#define CAPABILITIES_BIND    (1U << CAP_NET_BIND_SERVICE)
#define CAPABILITIES_SOCKETS (1U << CAP_NET_ADMIN | 1U << CAP_NET_RAW | 1U << CAP_SYS_ADMIN)

/*
 * capabilities_reduce(extra, kept):
 * Drop all capabilities but CAP_NET_BIND_SERVICE and ${extra}, of CAPABILITIES_SOCKETS. Set ${kept}
 * to those of them that were permitted.
 *
 * Thread: main, before any other thread
 * Errors: 0; -errno of capset(2); -EPERM (other capabilities remain)
 */
int capabilities_reduce(unsigned extra, unsigned *kept) NODISCARD;

/*
 * capabilities_shed(extra):
 * In a process that was not root: drop those of CAPABILITIES_SOCKETS that are not in ${extra}, and
 * the kept ones from the ambient set. Others, of the service manager, are left alone.
 *
 * Thread: main, before any other thread
 * Errors: 0; -errno of capset(2)
 */
int capabilities_shed(unsigned extra) NODISCARD;

/*
 * capabilities_survive_exec():
 * Keep CAP_NET_BIND_SERVICE, without root also CAPABILITIES_SOCKETS, across the next execve(2), as
 * far as permitted now.
 *
 * Thread: any; also between fork(2) and execve(2)
 * Errors: 0; -errno of capset(2) or prctl(2)
 * Source: capabilities(7), ambient set
 */
int capabilities_survive_exec(void) NODISCARD;

#endif
