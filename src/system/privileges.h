/*
 * system/privileges: drops root, but keeps CAP_NET_BIND_SERVICE, because listeners of a later
 * reload may need low ports.
 *
 * Look up user and group first; drop root after opening sockets, log and pid file, before the first
 * thread. Failures are logged.
 */
#ifndef SYSTEM_PRIVILEGES_H
#define SYSTEM_PRIVILEGES_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"

struct privileges {
    bool change; /* false: keep the user; uid and gid are the process's */
    uid_t uid;
    gid_t gid;
    char login[LOGIN_NAME_MAX]; /* user for initgroups(3); "": only the group `gid` */
    bool has_groups;            /* privileges_keep_groups() was called */
    unsigned
        extra; /* capabilities to keep besides CAP_NET_BIND_SERVICE, see capabilities_reduce() */
};

/*
 * privileges_lookup(out, user, group):
 * Look up ${user} and ${group}, names or numbers. ${user} NULL: unchanged; ${group} NULL: the
 * user's primary group. Without root only the current ids are allowed.
 *
 * Errors: 0; -ENOENT (unknown; a number without entry needs ${group}); -EPERM (not root); -errno of
 *         the user database
 */
int privileges_lookup(struct privileges *out, const char *user, const char *group) NODISCARD;

/*
 * privileges_take_groups(out, p) / privileges_return_groups(ours):
 * Set the effective and supplementary groups of ${p}, and return the previous ones / restore
 * ${ours}, and free it.
 *
 * Thread: main, as root
 * Errors: 0; -ENOMEM; -errno, logged; after an error the groups are unchanged
 */
struct privileges_groups;
int privileges_take_groups(struct privileges_groups **out, const struct privileges *p) NODISCARD;
void privileges_return_groups(struct privileges_groups *ours);

/*
 * privileges_keep_groups(p):
 * Set the supplementary groups of ${p} now: after chroot(2) the group database is out of reach.
 *
 * Thread: main, as root
 * Errors: 0; -errno, logged
 */
int privileges_keep_groups(struct privileges *p) NODISCARD;

/*
 * privileges_set_no_new_privs():
 * Forbid gaining privileges by execve(2), for children too. Failure (old kernel) is logged.
 *
 * Thread: main, before any other thread
 * Source: prctl(2), PR_SET_NO_NEW_PRIVS
 */
void privileges_set_no_new_privs(void);

/*
 * privileges_drop(p):
 * Switch to ${p} for good: real, effective and saved ids, supplementary groups, capabilities. Exit
 * after an error: ids may be mixed. Without a change of user drop only capabilities.
 *
 * Thread: main, before any other thread
 * Errors: 0; -errno of the failed call; -EPERM (root could be regained)
 * Source: Chen, Wagner, Dean, "Setuid Demystified" (2002): groups, gid, uid, then verify
 */
int privileges_drop(const struct privileges *p) NODISCARD;

#endif
