/* ctl/ctl_move: moves sessions to a worker loop. */
#ifndef CTL_CTL_MOVE_H
#define CTL_CTL_MOVE_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_move_options[];

/*
 * ctl_move_sessions(c, a) / ctl_move_rebalance(c, a):
 * Move one session, or all that match filters / let the daemon move sessions to idle loops.
 */
enum ctl_exit ctl_move_sessions(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_move_rebalance(struct ctl_context *c, const struct ctl_arguments *a);

#endif
