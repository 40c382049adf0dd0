/*
 * daemon/pid_file: locked pid file.
 *
 * The process holds the lock while it lives, so the file of a crashed daemon is recognized.
 * Failures are logged.
 */
#ifndef DAEMON_PID_FILE_H
#define DAEMON_PID_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"

struct pid_file;
struct privileges;

/*
 * pid_file_create(out, path, user):
 * Lock ${path} and write the pid of this process. A stale pid is replaced, other content is not.
 * Mode 0600, as any process that can open the file can lock it. The file is opened as ${user} if
 * permitted, else as root (daemon/safe_open); ${user} NULL: as the process's user.
 *
 * Thread: main
 * Owns:   ${path} is copied
 * Errors: 0; -EBUSY (already running); -EINVAL (not a pid file); -ENOMEM; as safe_open(); -errno of
 *         pwrite(2)
 */
int pid_file_create(struct pid_file **out, const char *path,
                    const struct privileges *user) NODISCARD;

/*
 * pid_file_adopt(out, path, fd):
 * Take over ${fd}, open and locked, from the process that this one replaces, if ${fd} is the file
 * at ${path}. Until pid_file_claim() the file keeps its content and belongs to the other process.
 *
 * Thread: main
 * Owns:   ${path} is copied; takes ${fd}, except after an error
 * Errors: 0; -ESTALE (not at ${path}); -ENOMEM
 */
int pid_file_adopt(struct pid_file **out, const char *path, int fd) NODISCARD;

/*
 * pid_file_is_adopted(pf):
 * Does the file belong to another process, until pid_file_claim()? False for NULL.
 *
 * Thread: main
 */
bool pid_file_is_adopted(const struct pid_file *pf);

/*
 * pid_file_claim(pf):
 * Own the file: write the pid of this process. NULL is allowed. Failures are logged.
 *
 * Thread: main
 */
void pid_file_claim(struct pid_file *pf);

/*
 * pid_file_give(pf, pid):
 * Write ${pid}, the process that replaces this one, and leave file and lock to it. ${pid} 0: that
 * process has not adopted the file, so remove the file. ${pf} may be NULL.
 *
 * Thread: main
 */
void pid_file_give(struct pid_file *pf, pid_t pid);

/*
 * pid_file_descriptor(pf):
 * The open file; -1 for NULL.
 *
 * Thread: main
 * Owns:   ${pf} keeps the descriptor
 */
int pid_file_descriptor(const struct pid_file *pf);

/*
 * pid_file_remove(pf):
 * Remove the file if this process owns it, or empty it if removing is denied. Unlock it. NULL is
 * allowed.
 *
 * Thread: main
 */
void pid_file_remove(struct pid_file *pf);

#endif
