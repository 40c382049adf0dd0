/*
 * Prints for check_commands.py, with tabs between: `command`, its name and its arguments; `option`,
 * where it belongs (a command, "filters" or "global"), its letter or "-", its name, and what its
 * value is called or "-".
 */
#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl_commands.h"
#include "ctl/ctl_filter.h"

static void print_options(const char *owner, const struct ctl_option *options)
{
    for (; options && options->name; options++)
        printf("option\t%s\t%c\t%s\t%s\n", owner, options->letter ? options->letter : '-',
               options->name, options->value ? options->value : "-");
}

static void print_command(const struct ctl_command *command)
{
    printf("command\t%s\t", command->name);
    for (unsigned i = 0; i < CTL_COMMAND_WORDS && command->words[i].name; i++)
        printf(command->words[i].optional ? "%s[%s]" : "%s%s", i > 0 ? " " : "",
               command->words[i].name);
    putchar('\n');
    for (unsigned i = 0; i < CTL_COMMAND_SETS; i++)
        if (command->options[i] != ctl_filter_options)
            print_options(command->name, command->options[i]);
}

int main(void)
{
    for (const struct ctl_command *command = ctl_commands.list; command->name; command++)
        print_command(command);
    print_options("filters", ctl_filter_options);
    print_options("global", ctl_commands.options);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
