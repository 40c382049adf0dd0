/*
 * ctl/ctl_terminal: the user's terminal as a full screen, restored on every exit.
 *
 *   open -> [wait for a key, draw a frame] ... -> close
 *
 * SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGABRT restore the terminal and then end the process as
 * they do by default. SIGTSTP restores it while the process is stopped. There is one terminal.
 */
#ifndef CTL_CTL_TERMINAL_H
#define CTL_CTL_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

#define CTL_TERMINAL_BOLD  "\033[1m"
#define CTL_TERMINAL_PLAIN "\033[0m"

/* What ctl_terminal_wait() returns instead of a key. */
enum ctl_terminal_event {
    CTL_TERMINAL_NOTHING = -1, /* timeout */
    CTL_TERMINAL_RESIZED = -2, /* resized, or continued after a stop: draw again */
    CTL_TERMINAL_GONE = -3,    /* the input has ended */
};

struct ctl_terminal_size {
    unsigned columns, rows;
};

/*
 * ctl_terminal_open() / ctl_terminal_close():
 * Switch to the full screen / restore the terminal.
 *
 * Errors: 0; -ENOTTY (standard output is no terminal)
 */
int ctl_terminal_open(void) NODISCARD;
void ctl_terminal_close(void);

/* ctl_terminal_size(): size of the terminal; 80x24 if unknown. */
struct ctl_terminal_size ctl_terminal_size(void);

/* ctl_terminal_wait(timeout_ns): wait for a key; return it, or an event. */
int ctl_terminal_wait(int64_t timeout_ns);

/*
 * ctl_terminal_draw(frame):
 * Replace the screen's content by the lines of ${frame}, which must fit.
 */
void ctl_terminal_draw(const char *frame);

#endif
