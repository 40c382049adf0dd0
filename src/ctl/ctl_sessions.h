/*
 * ctl/ctl_sessions: lists sessions, page by page.
 */
#ifndef CTL_CTL_SESSIONS_H
#define CTL_CTL_SESSIONS_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_sessions_options[];

/* ctl_sessions_show(c, a): list the sessions that match. */
enum ctl_exit ctl_sessions_show(struct ctl_context *c, const struct ctl_arguments *a);

#endif
