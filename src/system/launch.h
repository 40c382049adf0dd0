/*
 * system/launch: starts a program that is not a child of this process, with named descriptors.
 *
 *   this process -- fork --> parent -- fork --> execve(2) of the program
 *
 * The parent waits for the program, to report how it ended. launch_release() kills the parent: then
 * init or systemd adopts the program.
 */
#ifndef SYSTEM_LAUNCH_H
#define SYSTEM_LAUNCH_H

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/must.h"

struct launch_descriptor {
    int fd;
    const char *name; /* name in LISTEN_FDNAMES, without colon */
};

struct launch_conf {
    const char *path;
    char *const *argv;
    const sigset_t *mask; /* signals that the program blocks */
    const struct launch_descriptor *descriptors;
    unsigned n;
};

struct launch {
    pid_t pid;
    int pidfd;       /* -1: the kernel has no pidfd */
    pid_t parent;    /* 0: ended by launch_release() */
    int report_fd;   /* readable: call launch_result() */
    int *exec_error; /* in shared memory: errno if the program was not executed; 0: none */
};

#define LAUNCH_RESULT_BYTES 160

/*
 * launch_start(out, conf):
 * Start the program with descriptors 0 to 2 and those of ${conf}. It gets the environment of this
 * process, but its own LISTEN_FDS, LISTEN_FDNAMES, LISTEN_PID and WATCHDOG_PID.
 *
 * Owns:   ${conf} is used during the call only; the caller keeps its descriptors, and on 0 calls
 *         launch_close()
 * Errors: 0; -ENOMEM, -EAGAIN (no process), -ECHILD (the parent was killed), -EMFILE, -ENFILE
 * Source: sd_listen_fds(3)
 */
int launch_start(struct launch *out, const struct launch_conf *conf) NODISCARD;

/*
 * launch_result(l, text, size):
 * Write how the program ended, such as `exited with status 1`; `runs` if it has not ended. After
 * any other result do not call it again.
 */
const char *launch_result(const struct launch *l, char *text, size_t size);

/* launch_kill(l): kill the program. */
void launch_kill(const struct launch *l);

/*
 * launch_release(l):
 * End the parent: init or systemd adopts the program, which can still be killed.
 */
void launch_release(struct launch *l);

/* launch_close(l): release the program, and free what launch_start() allocated. */
void launch_close(struct launch *l);

#endif
