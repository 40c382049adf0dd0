/* ctl/ctl_command: a command, its options and arguments. */
#ifndef CTL_CTL_COMMAND_H
#define CTL_CTL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ctl/ctl_exit.h"
#include "ctl/ctl_value.h"

struct ctl_arguments;
struct ctl_context;

/* An option --name. Arrays of options end with a NULL name. */
struct ctl_option {
    const char *name;
    const char *value; /* placeholder for the option's value; NULL: takes no value */
    enum ctl_value kind;
    const char *help;
    char letter; /* 0: none */
};

/* A positional argument. */
struct ctl_word {
    const char *name; /* NULL: no more */
    enum ctl_value kind;
    bool optional;
};

#define CTL_COMMAND_WORDS 2
#define CTL_COMMAND_SETS  2

struct ctl_command {
    const char *name;
    struct ctl_word words[CTL_COMMAND_WORDS];
    const struct ctl_option *options[CTL_COMMAND_SETS]; /* NULL: none */
    const char *help;                                   /* one line */
    const char *more;                                   /* paragraphs; NULL: none */
    bool offline;                                       /* needs no daemon */
    bool shows;                                         /* changes nothing */
    bool is_live;                                       /* draws again and again */
    bool restarts; /* the daemon may not be ready for a while */
    enum ctl_exit (*run)(struct ctl_context *context, const struct ctl_arguments *arguments);
};

struct ctl_commands {
    const struct ctl_option *options; /* of all commands, before or after the command */
    const struct ctl_command *list;   /* ends with a NULL name */
};

/* ctl_command_find(all, name): return the command ${name}; NULL: none. */
static inline const struct ctl_command *ctl_command_find(const struct ctl_commands *all,
                                                         const char *name)
{
    for (const struct ctl_command *command = all->list; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

#endif
