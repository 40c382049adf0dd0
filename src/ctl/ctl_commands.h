/*
 * ctl/ctl_commands: the table of commands, for usage, help, completion and the check of
 * reactorctl(1).
 */
#ifndef CTL_CTL_COMMANDS_H
#define CTL_CTL_COMMANDS_H

#include "ctl/ctl_command.h"

extern const struct ctl_commands ctl_commands;

#endif
