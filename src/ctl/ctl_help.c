#include "ctl/ctl_help.h"

#include <jansson.h>

#include "ctl/ctl_client.h"
#include "ctl/ctl_report.h"

#define INDENT       2
#define OPTION_WIDTH 28

void ctl_help_synopsis(FILE *out, const struct ctl_command *command)
{
    bool has_options = false;

    fputs(command->name, out);
    for (unsigned i = 0; i < CTL_COMMAND_WORDS && command->words[i].name; i++)
        fprintf(out, command->words[i].optional ? " [%s]" : " %s", command->words[i].name);
    for (unsigned i = 0; i < CTL_COMMAND_SETS; i++)
        has_options |= command->options[i] != NULL;
    if (has_options)
        fputs(" [OPTION]...", out);
}

static void ctl_help_options(FILE *out, const struct ctl_option *options)
{
    for (; options && options->name; options++) {
        int n = 0;

        if (options->letter)
            n = fprintf(out, "%*s-%c, ", INDENT, "", options->letter);
        else
            n = fprintf(out, "%*s    ", INDENT, "");
        n += fprintf(out, "--%s%s%s", options->name, options->value ? " " : "",
                     options->value ? options->value : "");
        if (n > OPTION_WIDTH + INDENT)
            n = fprintf(out, "\n") - 1;
        fprintf(out, "%*s%s\n", OPTION_WIDTH + 2 * INDENT - n, "", options->help);
    }
}

static void ctl_help_commands(FILE *out, const struct ctl_command *command)
{
    for (; command->name; command++)
        fprintf(out, "%*s%-12s%s\n", INDENT, "", command->name, command->help);
}

void ctl_help_usage(FILE *out, const struct ctl_commands *all)
{
    fputs("Usage: reactorctl [OPTION]... COMMAND [ARGUMENT]...\n"
          "\n"
          "Inspect and control a running reactord.\n"
          "\n"
          "Commands (details: reactorctl help COMMAND):\n",
          out);
    ctl_help_commands(out, all->list);
    fputs("\nOptions:\n", out);
    ctl_help_options(out, all->options);
    fputs("\n"
          "Exit status:\n"
          "  0  done\n"
          "  1  refused by reactord, or by you when asked\n"
          "  2  the command line has errors, or reactord cannot be reached\n"
          "\n"
          "See reactorctl(1).\n",
          out);
}

void ctl_help_command(FILE *out, const struct ctl_command *command)
{
    fputs("Usage: reactorctl ", out);
    ctl_help_synopsis(out, command);
    fprintf(out, "\n\n%c%s.\n", command->help[0] - 'a' + 'A', command->help + 1);
    if (command->more)
        fprintf(out, "%s\n", command->more);
    if (command->options[0])
        fputs("\nOptions:\n", out);
    for (unsigned i = 0; i < CTL_COMMAND_SETS; i++)
        ctl_help_options(out, command->options[i]);
}

void ctl_help_version(FILE *out)
{
    fprintf(out,
            "reactorctl " REACTORD_VERSION "\n"
            "  HTTP        libcurl %s\n"
            "  JSON        jansson %s\n",
            ctl_client_version(), jansson_version_str());
}

enum ctl_exit ctl_help_show(struct ctl_context *c, const struct ctl_arguments *a)
{
    const struct ctl_command *command;

    (void)c;
    if (a->n_words == 0) {
        ctl_help_usage(stdout, a->all);
        return CTL_EXIT_OK;
    }
    command = ctl_command_find(a->all, a->words[0]);
    if (!command) {
        ctl_report("unknown command '%s'; 'reactorctl help' lists them", a->words[0]);
        return CTL_EXIT_FAILED;
    }
    ctl_help_command(stdout, command);
    return CTL_EXIT_OK;
}
