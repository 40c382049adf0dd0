/* ctl/ctl_move: moves sessions to a worker loop. */
#ifndef CTL_CTL_MOVE_H
#define CTL_CTL_MOVE_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_move_options[];

/* ctl_move_sessions(c, a): move one session, or all that match filters. */
enum ctl_exit ctl_move_sessions(struct ctl_context *c, const struct ctl_arguments *a);

#endif
