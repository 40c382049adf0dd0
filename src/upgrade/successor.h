/*
 * upgrade/successor: the process that is to replace this one: starts it, waits until it is ready or
 * has failed, then exchanges messages.
 */
#ifndef UPGRADE_SUCCESSOR_H
#define UPGRADE_SUCCESSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"
#include "system/launch.h"

struct program;
struct successor;

enum successor_state {
    SUCCESSOR_STARTING,
    SUCCESSOR_READY,
    SUCCESSOR_TAKES_OVER, /* after successor_go(): the successor waits for successor_set_main() */
    SUCCESSOR_FAILED      /* has failed; successor_destroy() kills it if it still runs */
};

struct successor_conf {
    const struct program *program;
    /* the last is replaced by the hand-over socket */
    const struct launch_descriptor *descriptors;
    unsigned n;
    int64_t timeout_ns; /* until the successor takes over */
};

/*
 * successor_start(out, conf):
 * Start the program with the descriptors; in place of the last it gets a socket connected to this
 * process.
 *
 * Owns:   ${conf} is used during the call only
 * Errors: 0; as hand_over_open() and launch_start(); -errno of timerfd_create(2)
 */
int successor_start(struct successor **out, const struct successor_conf *conf) NODISCARD;

/*
 * successor_fd(s) / successor_step(s):
 * Descriptor that is readable when successor_step() has work / handle messages, timeout and end;
 * SUCCESSOR_STARTING: nothing new.
 */
int successor_fd(const struct successor *s);
enum successor_state successor_step(struct successor *s) NODISCARD;

/*
 * successor_pid(s) / successor_has_pid_file(s) / successor_reason(s):
 * The successor's pid / once ready: has it adopted the pid file? / why it failed.
 */
pid_t successor_pid(const struct successor *s);
bool successor_has_pid_file(const struct successor *s);
const char *successor_reason(const struct successor *s);

/*
 * successor_go(s, state_fd):
 * Ask the successor to take over, with ${state_fd}. Its answer leads to SUCCESSOR_TAKES_OVER.
 *
 * Errors: as hand_over_send()
 */
int successor_go(struct successor *s, int state_fd) NODISCARD;

/*
 * successor_set_main(s, state_fd):
 * Tell the successor, now systemd's main process, to complete the take-over with the state of now.
 *
 * Thread: main, after SUCCESSOR_TAKES_OVER
 * Errors: as hand_over_send()
 */
int successor_set_main(struct successor *s, int state_fd) NODISCARD;

/* successor_socket(s): the hand-over socket of the program. */
int successor_socket(const struct successor *s);

/*
 * successor_report(s, word, state_fd):
 * Send "state" or "end", with ${state_fd}. A failure is logged at debug level.
 *
 * Thread: main, after SUCCESSOR_TAKES_OVER
 */
void successor_report(struct successor *s, const char *word, int state_fd);

/*
 * successor_order(s, word):
 * Receive a message into ${word}, of HAND_OVER_TEXT_BYTES; false: none.
 *
 * Thread: main, after SUCCESSOR_TAKES_OVER
 */
bool successor_order(struct successor *s, char *word) NODISCARD;

/*
 * successor_destroy(s):
 * Free ${s}, and kill the successor unless successor_set_main() was successful. NULL is allowed.
 */
void successor_destroy(struct successor *s);

#endif
