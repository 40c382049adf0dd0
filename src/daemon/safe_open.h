/*
 * daemon/safe_open: open a file as root for a user who must not gain by it.
 *
 * Root writes wherever a symbolic or a hard link leads, so a path that the user can change would
 * let it write to any file. The file is opened as the user. Only if the user may not, root opens
 * it, and then only through directories that the user cannot change. (Postfix has a safe_open() for
 * the same; ours leaves the first half to the kernel.)
 */
#ifndef DAEMON_SAFE_OPEN_H
#define DAEMON_SAFE_OPEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"

struct privileges;

struct safe_open {
    const char *path; /* absolute */
    int flags;        /* of open(2); O_NOFOLLOW: the path must not be a symbolic link */
    mode_t mode;
    const struct privileges *user; /* NULL: the process's own user */
};

/*
 * safe_open(out_fd, as_root, how):
 * Open ${how}->path. *${as_root}: root has opened it, since the user may not. A path that root must
 * not open is logged.
 *
 * Thread: main, before any other thread is started if ${how}->user is not the process's own user
 * Owns:   the caller owns *${out_fd}
 * Errors: 0; -EACCES (also: the user could have put the file there); -ELOOP; -ENOMEM; -errno of
 *         open(2)
 */
int safe_open(int *out_fd, bool *as_root, const struct safe_open *how) NODISCARD;

#endif
