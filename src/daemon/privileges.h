/*
 * daemon/privileges: the user and group reactord runs as once nothing needs root any more.
 *
 * The names are looked up before anything is opened, and the change is made after sockets, log and
 * pid file are open and before the first thread. What fails is logged with the name it failed on.
 */
#ifndef DAEMON_PRIVILEGES_H
#define DAEMON_PRIVILEGES_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"

struct privileges {
    bool change; /* false: stay who we are; the ids are then ours */
    uid_t uid;
    gid_t gid;
    char login[LOGIN_NAME_MAX]; /* whose supplementary groups are taken; "": nobody's */
};

/*
 * privileges_lookup(out, user, group):
 * Find out who ${user} and ${group} are, names or numbers. NULL for ${user}: the user stays; NULL
 * for ${group}: the user's primary group. Who is not root may only ask for what it is already.
 *
 * Thread: main
 * Owns:   nothing of the arguments
 * Errors: 0; -ENOENT (no such user or group, or a number without an entry and no group given);
 *         -EPERM (not root); -errno of the user database
 */
int privileges_lookup(struct privileges *out, const char *user, const char *group) NODISCARD;

/*
 * privileges_take_groups(out, p) / privileges_return_groups(ours):
 * Set the effective group and the supplementary groups to those of ${p} / restore the groups from
 * before.
 *
 * Thread: main, as root
 * Owns:   privileges_return_groups() frees *${out}
 * Errors: 0; -ENOMEM; -errno of what failed, which is logged, with all as it was
 */
struct privileges_groups;
int privileges_take_groups(struct privileges_groups **out, const struct privileges *p) NODISCARD;
void privileges_return_groups(struct privileges_groups *ours);

/*
 * privileges_forbid_gains():
 * Keep this process and its children from gaining privileges by running a program, set-user-ID or
 * not.
 *
 * Thread: main, before any other thread
 * Errors: none (an old kernel cannot, which is logged)
 * Source: prctl(2), PR_SET_NO_NEW_PRIVS
 */
void privileges_forbid_gains(void);

/*
 * privileges_drop(p):
 * Become ${p}, for good: real, effective and saved ids, and supplementary groups. On an error the
 * process is in between and has to end.
 *
 * Thread: main, before any other thread
 * Errors: 0; -errno of what failed; -EPERM (root could be had back)
 * Source: Chen, Wagner, Dean, "Setuid Demystified" (2002): groups first, then gid, then uid, then
 *         verify
 */
int privileges_drop(const struct privileges *p) NODISCARD;

#endif
