/*
 * ctl/ctl_show: commands that show the daemon and its objects.
 */
#ifndef CTL_CTL_SHOW_H
#define CTL_CTL_SHOW_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

/*
 * ctl_show_status(c, a) / ctl_show_loops(c, a) / ctl_show_listeners(c, a) /
 * ctl_show_upstreams(c, a):
 * Show the process / loops / listeners / upstreams, a line each.
 */
enum ctl_exit ctl_show_status(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_show_loops(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_show_listeners(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_show_upstreams(struct ctl_context *c, const struct ctl_arguments *a);

/*
 * ctl_show_config(c, a) / ctl_show_metrics(c, a):
 * Write the running configuration / the figures as Prometheus reads them.
 */
enum ctl_exit ctl_show_config(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_show_metrics(struct ctl_context *c, const struct ctl_arguments *a);

#endif
