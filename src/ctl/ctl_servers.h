/*
 * ctl/ctl_servers: state and weight of a server.
 */
#ifndef CTL_CTL_SERVERS_H
#define CTL_CTL_SERVERS_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_servers_wait_options[];

/*
 * ctl_servers_drain(c, a) / ctl_servers_disable(c, a) / ctl_servers_enable(c, a) /
 * ctl_servers_weight(c, a):
 * Set a server's state or weight. With --wait, drain and disable return only when the server has no
 * session.
 */
enum ctl_exit ctl_servers_drain(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_servers_disable(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_servers_enable(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_servers_weight(struct ctl_context *c, const struct ctl_arguments *a);

#endif
