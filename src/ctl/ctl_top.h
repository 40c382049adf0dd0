/*
 * ctl/ctl_top: live view of loops, listeners, upstreams and the heaviest sessions.
 */
#ifndef CTL_CTL_TOP_H
#define CTL_CTL_TOP_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_top_options[];

/*
 * ctl_top_show(c, a):
 * Show the view until key q; once with --once, or if standard output is no terminal.
 */
enum ctl_exit ctl_top_show(struct ctl_context *c, const struct ctl_arguments *a);

#endif
