/*
 * system/pid_file: locked pid file.
 *
 * The process holds the lock while it lives, so the file of a crashed daemon is recognized as
 * stale. Failures are logged.
 */
#ifndef SYSTEM_PID_FILE_H
#define SYSTEM_PID_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"

struct pid_file;
struct privileges;

/*
 * pid_file_create(out, path, user):
 * Lock ${path} and write the pid of this process. A stale pid is replaced, other content is not.
 * The mode is 0600, because any process that can open the file can lock it. The file is opened as
 * ${user} if permitted, else as root (system/safe_open); ${user} NULL: as the process's user.
 *
 * Owns:   ${path} is copied
 * Errors: 0; -EBUSY (already running); -EAGAIN (removed again and again); -EINVAL (not a pid file);
 *         -ENOMEM; as safe_open(); -errno of pwrite(2)
 */
int pid_file_create(struct pid_file **out, const char *path,
                    const struct privileges *user) NODISCARD;

/*
 * pid_file_adopt(out, path, fd):
 * Take over ${fd}, open and locked, from the process that this one replaces, if ${fd} is the file
 * at ${path}. Until pid_file_claim() the file keeps its content and belongs to the other process.
 *
 * Owns:   ${path} is copied; takes ${fd}, except after an error
 * Errors: 0; -ESTALE (not at ${path}); -ENOMEM
 */
int pid_file_adopt(struct pid_file **out, const char *path, int fd) NODISCARD;

/*
 * pid_file_is_adopted(pf):
 * Does the file belong to another process: adopted but not claimed, or given? False for NULL.
 */
bool pid_file_is_adopted(const struct pid_file *pf);

/*
 * pid_file_claim(pf):
 * Own the file: write the pid of this process. NULL is allowed. Failures are logged.
 */
void pid_file_claim(struct pid_file *pf);

/*
 * pid_file_give(pf, pid):
 * Leave file and lock to the process that replaces this one, and write its ${pid}. ${pid} 0: that
 * process has not adopted the file, so remove the file. ${pf} may be NULL.
 */
void pid_file_give(struct pid_file *pf, pid_t pid);

/*
 * pid_file_descriptor(pf):
 * Descriptor of the open file; -1: none.
 *
 * Owns:   ${pf} keeps the descriptor
 */
int pid_file_descriptor(const struct pid_file *pf);

/*
 * pid_file_remove(pf):
 * If this process owns the file, remove it, or empty it if removing fails. Unlock it, and free
 * ${pf}. NULL is allowed.
 */
void pid_file_remove(struct pid_file *pf);

#endif
