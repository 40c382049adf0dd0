/*
 * daemon/safe_open: open a file as root without being tricked by an unprivileged user.
 *
 * Root follows symbolic and hard links, so a path that the user can change would let it write to
 * any file. Therefore the file is opened as the user. Only if that is denied, root opens it,
 * through directories that the user cannot change. (As Postfix's safe_open(), but the kernel checks
 * the first half.)
 */
#ifndef DAEMON_SAFE_OPEN_H
#define DAEMON_SAFE_OPEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"

struct privileges;

struct safe_open {
    const char *path; /* absolute */
    int flags;        /* of open(2); O_NOFOLLOW: must not be a symbolic link */
    mode_t mode;
    const struct privileges *user; /* NULL: the process's user */
};

/*
 * safe_open(out_fd, as_root, how):
 * Open ${how}->path. *${as_root}: opened by root, since the user was denied. A path unsafe for root
 * is logged.
 *
 * Thread: main, before any other thread unless ${how}->user is the process's user
 * Owns:   the caller owns *${out_fd}
 * Errors: 0; -EACCES (or the user could have created the file); -ELOOP; -ENOMEM; -errno of open(2)
 */
int safe_open(int *out_fd, bool *as_root, const struct safe_open *how) NODISCARD;

#endif
