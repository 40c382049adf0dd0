/*
 * ctl/main: reactorctl: queries and controls a running reactord through its admin interface. One
 * thread.
 *
 *   command line -> ctl_arguments (table: ctl_commands) -> ctl_nodes -> a family of commands
 *                                                      -> ctl_context -> ctl_client (HTTP)
 */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "ctl/ctl_arguments.h"
#include "ctl/ctl_commands.h"
#include "ctl/ctl_complete.h"
#include "ctl/ctl_help.h"
#include "ctl/ctl_nodes.h"
#include "ctl/ctl_report.h"

/* Hidden command: completions for the words of a command line. */
#define COMPLETE_WORD "__complete"

static enum ctl_exit usage(void)
{
    fputs("Try 'reactorctl --help' for the commands.\n", stderr);
    return CTL_EXIT_FAILED;
}

static enum ctl_exit run(int argc, char **argv)
{
    struct ctl_arguments a;

    if (argc > 1 && strcmp(argv[1], COMPLETE_WORD) == 0) {
        ctl_complete_words(argc - 2, argv + 2);
        return CTL_EXIT_OK;
    }
    if (ctl_arguments_parse(&a, &ctl_commands, argc, argv) < 0)
        return usage();
    if (ctl_arguments_has(&a, "version")) {
        ctl_help_version(stdout);
        return CTL_EXIT_OK;
    }
    if (ctl_arguments_has(&a, "help")) {
        if (a.command)
            ctl_help_command(stdout, a.command);
        else
            ctl_help_usage(stdout, &ctl_commands);
        return CTL_EXIT_OK;
    }
    if (!a.command) {
        ctl_report("a command is needed");
        return usage();
    }
    return a.command->offline ? a.command->run(NULL, &a) : ctl_nodes_run(&a);
}

/* Fail if output was lost. */
static enum ctl_exit finish(enum ctl_exit code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    ctl_report("standard output: %s", strerror(errno));
    return code == CTL_EXIT_OK ? CTL_EXIT_FAILED : code;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    return finish(run(argc, argv));
}
