/*
 * ctl/ctl_arguments: parses the command line by the table of commands.
 */
#ifndef CTL_CTL_ARGUMENTS_H
#define CTL_CTL_ARGUMENTS_H

#include "base/must.h"
#include "ctl/ctl_command.h"

#define CTL_ARGUMENTS_OPTIONS 32

struct ctl_argument {
    const struct ctl_option *option;
    const char *value; /* "" for an option without value */
};

struct ctl_arguments {
    const struct ctl_commands *all;
    const struct ctl_command *command; /* NULL: none was given */
    struct ctl_argument options[CTL_ARGUMENTS_OPTIONS];
    unsigned n_options;
    const char *words[CTL_COMMAND_WORDS];
    unsigned n_words;
};

/*
 * ctl_arguments_parse(out, all, argc, argv):
 * Parse the command line, with a command of ${all}; report the first error. With --help or
 * --version, arguments may be missing.
 *
 * Owns:   ${out} points into ${argv}, which is permuted
 * Errors: 0; -EINVAL
 */
int ctl_arguments_parse(struct ctl_arguments *out, const struct ctl_commands *all, int argc,
                        char **argv) NODISCARD;

/*
 * ctl_arguments_value(a, name) / ctl_arguments_has(a, name):
 * Return the value of option --${name}, NULL: not given / is the option given?
 */
const char *ctl_arguments_value(const struct ctl_arguments *a, const char *name);
bool ctl_arguments_has(const struct ctl_arguments *a, const char *name);

#endif
