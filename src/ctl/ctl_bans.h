/* ctl/ctl_bans: the commands bans and lift. */
#ifndef CTL_CTL_BANS_H
#define CTL_CTL_BANS_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_bans_options[];
extern const struct ctl_option ctl_bans_lift_options[];

/* ctl_bans_show(c, a) / ctl_bans_lift(c, a): list bans / end bans. */
enum ctl_exit ctl_bans_show(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_bans_lift(struct ctl_context *c, const struct ctl_arguments *a);

#endif
