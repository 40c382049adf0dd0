/*
 * daemon/pid_file: locked pid file.
 *
 * The lock is held for life, so a crashed daemon's file is recognized. Failures are logged.
 */
#ifndef DAEMON_PID_FILE_H
#define DAEMON_PID_FILE_H

#include "base/must.h"

struct pid_file;
struct privileges;

/*
 * pid_file_create(out, path, user):
 * Lock ${path} and write our pid. Replaces a stale pid file, no other content. Mode 0600: any
 * process that can open the file can lock it. Opened as ${user} if permitted, else as root
 * (daemon/safe_open); NULL: as the process's user.
 *
 * Thread: main
 * Owns:   ${path} is copied
 * Errors: 0; -EBUSY (already running); -EINVAL (not a pid file); -ENOMEM; as safe_open()
 */
int pid_file_create(struct pid_file **out, const char *path,
                    const struct privileges *user) NODISCARD;

/*
 * pid_file_remove(pf):
 * Remove the file if still ours, or empty it if that is denied; unlock. NULL is allowed.
 *
 * Thread: main
 */
void pid_file_remove(struct pid_file *pf);

#endif
