/*
 * system/safe_open: safely open a file as root in a user's directory.
 *
 * In a user's directory, links could lead root to any file. So a file is opened as the user, or, if
 * that is denied, as root, but only through directories that the user cannot change. (As Postfix's
 * safe_open().)
 */
#ifndef SYSTEM_SAFE_OPEN_H
#define SYSTEM_SAFE_OPEN_H

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
 * Open ${how}->path. Set *${as_root} if root opened it in place of the user. A path that is unsafe
 * for root is logged.
 *
 * Thread: main, before any other thread unless ${how}->user is the process's user
 * Errors: 0; -EACCES (denied, or unsafe); -ELOOP; -ENOMEM; -errno of open(2)
 */
int safe_open(int *out_fd, bool *as_root, const struct safe_open *how) NODISCARD;

#endif
