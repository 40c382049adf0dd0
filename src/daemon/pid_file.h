/*
 * daemon/pid_file: one number in a file, and a lock that says that it is true.
 *
 * The file is locked as long as the process lives, so a file left behind by a crash is told from
 * that of a running daemon without trusting its number. What fails is logged with the path it
 * failed on.
 */
#ifndef DAEMON_PID_FILE_H
#define DAEMON_PID_FILE_H

#include "base/must.h"

struct pid_file;
struct privileges;

/*
 * pid_file_create(out, path, user):
 * Lock ${path} and write our process id to it. A stale pid file is taken over; a file that holds
 * anything but a process id is left alone. Its mode is 0600, since a process that can open it can
 * lock it. It is opened as ${user} if that user may, else as root (daemon/safe_open); NULL: as the
 * process's own user.
 *
 * Thread: main
 * Owns:   ${path} is copied
 * Errors: 0; -EBUSY (a running process holds it); -EINVAL (not a pid file); -ENOMEM; as safe_open()
 */
int pid_file_create(struct pid_file **out, const char *path,
                    const struct privileges *user) NODISCARD;

/*
 * pid_file_remove(pf):
 * Remove the file if it is still ours, or empty it where the directory no longer lets us; unlock.
 * NULL is allowed.
 *
 * Thread: main
 */
void pid_file_remove(struct pid_file *pf);

#endif
