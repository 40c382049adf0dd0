/*
 * daemon/successor: the process that is to replace this one: its start until it is ready or has
 * failed, then the messages to it.
 */
#ifndef DAEMON_SUCCESSOR_H
#define DAEMON_SUCCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"
#include "daemon/launch.h"

struct program;
struct successor;

enum successor_state {
    SUCCESSOR_STARTING,
    SUCCESSOR_READY,
    SUCCESSOR_TAKES_OVER, /* after successor_go(); it waits for successor_set_main() */
    SUCCESSOR_FAILED      /* and killed, if it still ran */
};

struct successor_conf {
    const struct program *program;
    /* the last element is set to the hand-over socket */
    const struct launch_descriptor *descriptors;
    unsigned n;
    int64_t timeout_ns; /* until it takes over */
};

/*
 * successor_start(out, conf):
 * Start the program with the descriptors; the last one is set to a socket connected to this
 * process.
 *
 * Thread: main
 * Owns:   ${conf} is borrowed during the call
 * Errors: 0; as hand_over_open() and launch_start(); -errno of timerfd_create(2)
 */
int successor_start(struct successor **out, const struct successor_conf *conf) NODISCARD;

/*
 * successor_fd(s) / successor_step(s):
 * Descriptor that is readable when successor_step() has work.
 *
 * Thread: main
 */
int successor_fd(const struct successor *s);
enum successor_state successor_step(struct successor *s) NODISCARD;

/*
 * successor_pid(s) / successor_has_pid_file(s) / successor_reason(s):
 * Its pid; has it adopted the pid file (once ready)? Why it failed.
 *
 * Thread: main
 */
pid_t successor_pid(const struct successor *s);
bool successor_has_pid_file(const struct successor *s);
const char *successor_reason(const struct successor *s);

/*
 * successor_go(s, state_fd):
 * Ask it to take over. Its answer comes from a process that is no descendant of this one.
 *
 * Thread: main
 * Errors: 0; -EPIPE (it has ended)
 */
int successor_go(struct successor *s, int state_fd) NODISCARD;

/*
 * successor_set_main(s):
 * Let it take over: systemd knows it as the main process.
 *
 * Thread: main, after SUCCESSOR_TAKES_OVER
 * Errors: 0; -EPIPE (it has ended)
 */
int successor_set_main(struct successor *s) NODISCARD;

/*
 * successor_report(s, word, state_fd):
 * Send "state" or "end". Ignored if it has ended.
 *
 * Thread: main, after SUCCESSOR_TAKES_OVER
 */
void successor_report(struct successor *s, const char *word, int state_fd);

/*
 * successor_order(s, word):
 * Receive a message from it; false: none.
 *
 * Thread: main, after SUCCESSOR_TAKES_OVER
 */
bool successor_order(struct successor *s, char *word) NODISCARD;

/*
 * successor_destroy(s):
 * Free ${s}, and kill the process unless it took over. NULL is allowed.
 *
 * Thread: main
 */
void successor_destroy(struct successor *s);

#endif
