/*
 * ctl/ctl_nodes: a command for one daemon, or for several, one after the other; when a daemon is
 * ready.
 */
#ifndef CTL_CTL_NODES_H
#define CTL_CTL_NODES_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

/* Options of ctl_nodes_ready(). */
extern const struct ctl_option ctl_nodes_ready_options[];

/*
 * ctl_nodes_run(a):
 * Run the command at each address of --node, or at the one of --address. A command that changes
 * something stops at the first node that does not carry it out, and `reload` and `upgrade` wait
 * until a node is ready before the next one; a command that shows something goes on.
 *
 * Returns the worst exit status.
 */
enum ctl_exit ctl_nodes_run(const struct ctl_arguments *a);

/* ctl_nodes_ready(c, a): report whether the daemon is ready for clients; with --wait, wait. */
enum ctl_exit ctl_nodes_ready(struct ctl_context *c, const struct ctl_arguments *a);

#endif
