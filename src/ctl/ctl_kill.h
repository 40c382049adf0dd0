/*
 * ctl/ctl_kill: ends sessions: by ID, by filters, or a share of the sessions over a time.
 */
#ifndef CTL_CTL_KILL_H
#define CTL_CTL_KILL_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_kill_options[];
extern const struct ctl_option ctl_kill_shed_options[];

/*
 * ctl_kill_sessions(c, a) / ctl_kill_shed(c, a):
 * End the matching sessions, on a terminal after a question / end a share of an upstream's or a
 * server's sessions, idlest first.
 */
enum ctl_exit ctl_kill_sessions(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_kill_shed(struct ctl_context *c, const struct ctl_arguments *a);

#endif
