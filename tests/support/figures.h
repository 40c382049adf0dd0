/*
 * support/figures: figures of objects as log lines, as SIGRTMIN writes them.
 */
#ifndef SUPPORT_FIGURES_H
#define SUPPORT_FIGURES_H

struct listeners;
struct upstream;

/*
 * figures_log_upstream(up) / figures_log_listeners(ls):
 * Log the figures of ${up} and its servers / of all listeners.
 *
 * Thread: any
 */
void figures_log_upstream(struct upstream *up);
void figures_log_listeners(struct listeners *ls);

#endif
