/*
 * ctl/ctl_pause: holds new connections of a listener or an upstream, and releases them.
 */
#ifndef CTL_CTL_PAUSE_H
#define CTL_CTL_PAUSE_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_pause_options[];
extern const struct ctl_option ctl_pause_resume_options[];

/*
 * ctl_pause_begin(c, a) / ctl_pause_end(c, a):
 * Run the command pause / resume. A name that a listener and an upstream share needs a prefix.
 */
enum ctl_exit ctl_pause_begin(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_pause_end(struct ctl_context *c, const struct ctl_arguments *a);

#endif
