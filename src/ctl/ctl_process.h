/*
 * ctl/ctl_process: commands for the whole process: settings, reload, upgrade.
 */
#ifndef CTL_CTL_PROCESS_H
#define CTL_CTL_PROCESS_H

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

extern const struct ctl_option ctl_process_reload_options[];

/*
 * ctl_process_set(c, a) / ctl_process_reset(c, a):
 * Change a setting until the next restart / undo all changes made at run time.
 */
enum ctl_exit ctl_process_set(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_process_reset(struct ctl_context *c, const struct ctl_arguments *a);

/*
 * ctl_process_reload(c, a) / ctl_process_confirm(c, a) / ctl_process_revert(c, a) /
 * ctl_process_upgrade(c, a):
 * Run the command of the same name.
 */
enum ctl_exit ctl_process_reload(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_process_confirm(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_process_revert(struct ctl_context *c, const struct ctl_arguments *a);
enum ctl_exit ctl_process_upgrade(struct ctl_context *c, const struct ctl_arguments *a);

#endif
