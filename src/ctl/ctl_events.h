/*
 * ctl/ctl_events: events of the daemon, and those to come.
 */
#ifndef CTL_CTL_EVENTS_H
#define CTL_CTL_EVENTS_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_events_options[];

/* ctl_events_show(c, a): run the command `events`. */
enum ctl_exit ctl_events_show(struct ctl_context *c, const struct ctl_arguments *a);

#endif
