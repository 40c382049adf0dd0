/*
 * system/signals: the handled signals, read from a signalfd.
 */
#ifndef SYSTEM_SIGNALS_H
#define SYSTEM_SIGNALS_H

#include <sys/types.h>

#include "base/must.h"

struct signal_notice {
    int number;
    pid_t pid; /* sender; 0: kernel, as for ^C */
    uid_t uid; /* sender */
};

/*
 * signals_open(out_fd):
 * Block SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 and SIGRTMIN, and open ${out_fd} to read
 * them. Ignore SIGPIPE and SIGXFSZ, so that system calls return an error: splice(2) and write(2)
 * lack MSG_NOSIGNAL. As process 1, have the kernel reap the children of other processes.
 *
 * Thread: main, before any other thread
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int signals_open(int *out_fd) NODISCARD;

/*
 * signals_read(fd, out):
 * Read the next signal.
 *
 * Errors: 0; -EAGAIN (none pending)
 */
int signals_read(int fd, struct signal_notice *out) NODISCARD;

/* signals_name(number): name of a handled signal, such as "SIGTERM". Thread: any */
const char *signals_name(int number);

#endif
