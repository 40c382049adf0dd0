/*
 * ctl/ctl_edits: adds servers at run time, and removes them.
 */
#ifndef CTL_CTL_EDITS_H
#define CTL_CTL_EDITS_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

/* ctl_edits_add(c, a) / ctl_edits_remove(c, a): add a server with its line / remove a server. */
enum ctl_exit ctl_edits_add(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_edits_remove(struct ctl_context *c, const struct ctl_arguments *a);

#endif
