/*
 * ctl/ctl_help: usage, help of a command, version.
 */
#ifndef CTL_CTL_HELP_H
#define CTL_CTL_HELP_H

#include <stdio.h>

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_context.h"

/*
 * ctl_help_usage(out, all) / ctl_help_command(out, command) / ctl_help_version(out):
 * Write the list of ${all} commands / what ${command} does / the version.
 */
void ctl_help_usage(FILE *out, const struct ctl_commands *all);
void ctl_help_command(FILE *out, const struct ctl_command *command);
void ctl_help_version(FILE *out);

/* ctl_help_synopsis(out, command): write the command with its arguments in a line. */
void ctl_help_synopsis(FILE *out, const struct ctl_command *command);

/* ctl_help_show(c, a): run the command `help`. */
enum ctl_exit ctl_help_show(struct ctl_context *c, const struct ctl_arguments *a);

#endif
