/*
 * daemon/capabilities: keeps CAP_NET_BIND_SERVICE, to bind ports below 1024 without root.
 *
 * The functions apply to the calling thread and threads that it creates.
 */
#ifndef DAEMON_CAPABILITIES_H
#define DAEMON_CAPABILITIES_H

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

/*
 * capabilities_reduce(kept):
 * Drop all capabilities but CAP_NET_BIND_SERVICE. Set ${kept} to whether this capability was
 * permitted.
 *
 * Thread: main, before any other thread
 * Errors: 0; -errno of capset(2); -EPERM (other capabilities remain)
 */
int capabilities_reduce(bool *kept) NODISCARD;

/*
 * capabilities_survive_exec():
 * Keep CAP_NET_BIND_SERVICE across the next execve(2), if it is permitted now.
 *
 * Thread: any; also between fork(2) and execve(2)
 * Errors: 0; -errno of capset(2) or prctl(2)
 * Source: capabilities(7), ambient set
 */
int capabilities_survive_exec(void) NODISCARD;

#endif
