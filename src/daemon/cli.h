/*
 * daemon/cli: command line, --help and --version.
 */
#ifndef DAEMON_CLI_H
#define DAEMON_CLI_H

#include <stdio.h>

#include "base/must.h"

/* If several options are given, the last in this order wins. */
enum cli_action { CLI_RUN, CLI_TEST, CLI_DUMP_CONFIG, CLI_DUMP_ORIGINS, CLI_VERSION, CLI_HELP };

struct cli {
    enum cli_action action;
    const char *config_path;
};

/*
 * cli_parse(out, argc, argv, errors):
 * Parse the arguments; report the first error to ${errors}.
 *
 * Owns:   ${out} points into ${argv}
 * Errors: 0; -EINVAL (unknown option, missing or unexpected value, stray argument)
 */
int cli_parse(struct cli *out, int argc, char **argv, FILE *errors) NODISCARD;

/*
 * cli_print_help(out) / cli_print_version(out):
 * Write the text of --help or --version.
 *
 * Errors: see ferror(3) of ${out}
 */
void cli_print_help(FILE *out);
void cli_print_version(FILE *out);

#endif
