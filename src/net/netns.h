/*
 * net/netns: network namespaces of sockets.
 *
 * note: namespace. A socket stays in the network namespace that its thread was in at socket(2), so
 * a thread is in another one for that call only: two setns(2) for each socket. A thread that cannot
 * return would connect and listen in the wrong network: the process aborts.
 */
#ifndef NET_NETNS_H
#define NET_NETNS_H

#include <stdint.h>

#include "base/must.h"

/* Where `ip netns add NAME` makes files. */
#define NETNS_DIRECTORY "/run/netns"

struct netns;

/*
 * netns_open(out, name):
 * Open the network namespace ${name}, of NETNS_DIRECTORY or an absolute path, and enter it once. It
 * lives on while it is open, even without its file. If this thread is in it anyway, ${out} is NULL.
 *
 * Owns:   the caller has a reference
 * Errors: 0; -EINVAL (another file); -ENOSYS (no /proc); -EPERM (needs CAP_SYS_ADMIN); -ENOMEM;
 *         -errno of open(2), setns(2)
 * Source: ip-netns(8); network_namespaces(7)
 */
int netns_open(struct netns **out, const char *name) NODISCARD;

/*
 * netns_hold(ns) / netns_release(ns):
 * Add a reference and return ${ns} / release one: the last closes ${ns}. NULL is allowed.
 */
struct netns *netns_hold(struct netns *ns);
void netns_release(struct netns *ns);

/*
 * netns_enter(ns) / netns_leave(ns):
 * Move this thread into ${ns} / back into that of the process, or abort. NULL: do nothing. See
 * note: namespace.
 *
 * Errors: 0; -errno of setns(2)
 */
int netns_enter(const struct netns *ns) NODISCARD;
void netns_leave(const struct netns *ns);

/*
 * netns_id(ns) / netns_id_of_socket(fd):
 * Number of ${ns} / of the namespace of the socket ${fd}, which no other one has at that time. 0:
 * that of the process (NULL), or unknown (before Linux 5.14, without CAP_NET_ADMIN).
 *
 * Source: socket(7), SO_NETNS_COOKIE; Linux, SIOCGSKNS
 */
uint32_t netns_id(const struct netns *ns);
uint32_t netns_id_of_socket(int fd);

#endif
