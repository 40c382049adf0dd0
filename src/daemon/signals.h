/*
 * daemon/signals: signals as data that the main thread reads, never as code that interrupts.
 *
 * The signals reactord answers to are blocked before there is a second thread, so that all threads
 * inherit the mask, and are read from a signalfd. A signal that it has no answer to keeps its
 * default action.
 */
#ifndef DAEMON_SIGNALS_H
#define DAEMON_SIGNALS_H

#include <sys/types.h>

#include "base/must.h"

struct signal_notice {
    int number;
    pid_t pid; /* of the sender; 0: the kernel, such as a terminal's ^C */
    uid_t uid; /* of the sender */
};

/*
 * signals_open(out_fd):
 * Block SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1 and SIGUSR2 and collect them in ${out_fd}; ignore
 * SIGPIPE and SIGXFSZ, whose errno says enough (splice(2) and write(2) have no MSG_NOSIGNAL).
 *
 * Thread: main, before any other thread
 * Owns:   the caller closes ${out_fd}
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int signals_open(int *out_fd) NODISCARD;

/*
 * signals_read(fd, out):
 * Take the next signal that came.
 *
 * Thread: main
 * Errors: 0; -EAGAIN (none waits)
 */
int signals_read(int fd, struct signal_notice *out) NODISCARD;

/*
 * signals_name(number):
 * "SIGTERM" and so on, for the signals that signals_open() collects.
 *
 * Thread: any
 */
const char *signals_name(int number);

#endif
