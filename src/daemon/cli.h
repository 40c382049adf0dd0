/*
 * daemon/cli: the command line: what was asked for, and the texts of --help and --version.
 */
#ifndef DAEMON_CLI_H
#define DAEMON_CLI_H

#include <stdio.h>

#include "base/must.h"

/* In rising order of precedence: of several that are asked for the last of this list is done. */
enum cli_action { CLI_RUN, CLI_TEST, CLI_DUMP_CONFIG, CLI_VERSION, CLI_HELP };

struct cli {
    enum cli_action action;
    const char *config_path;
};

/*
 * cli_parse(out, argc, argv, errors):
 * Read the arguments. The first one that is not understood is named in ${errors}, and --help with
 * it.
 *
 * Thread: main
 * Owns:   nothing; ${out} points into ${argv}
 * Errors: 0; -EINVAL (an unknown option, a value that is missing or not wanted, a stray argument)
 */
int cli_parse(struct cli *out, int argc, char **argv, FILE *errors) NODISCARD;

/*
 * cli_print_help(out) / cli_print_version(out):
 * Write the text of --help or --version.
 *
 * Thread: main
 * Errors: none; ask ferror(3) of ${out}
 */
void cli_print_help(FILE *out);
void cli_print_version(FILE *out);

#endif
