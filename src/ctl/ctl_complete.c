#include "ctl/ctl_complete.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "ctl/ctl_commands.h"
#include "ctl/ctl_context.h"
#include "ctl/ctl_upstreams.h"

#define TIMEOUT_NS NS_PER_S /* the user waits for completion */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/"

/* What the words before the cursor allow at the cursor. */
struct ctl_complete_place {
    const struct ctl_command *command; /* NULL: none yet */
    const struct ctl_option *option;   /* option whose value comes next; NULL: none */
    unsigned n_words;                  /* arguments given to the command */
    const char *address, *token_file;  /* values of --address and --token-file; NULL: not given */
};

static void ctl_complete_put_rows(struct ctl_context *c, const char *path, const char *key,
                                  bool servers)
{
    const struct ctl_request request = {.path = path};
    struct ctl_answer answer;
    const json_t *row;
    json_t *rows;
    size_t i;

    if (ctl_context_try(c, &request, &answer) != CTL_EXIT_OK)
        return;
    rows = ctl_context_rows(c, &answer, key);
    rows = servers ? ctl_upstreams_flat(rows) : json_incref(rows);
    json_array_foreach(rows, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));

        /* Skip names that the shell would interpret. */
        if (name && name[strspn(name, NAME_CHARS)] == '\0')
            puts(name);
    }
    json_decref(rows);
    ctl_client_drop(&answer);
}

static void ctl_complete_put_commands(void)
{
    for (const struct ctl_command *command = ctl_commands.list; command->name; command++)
        puts(command->name);
}

static void ctl_complete_put_values(struct ctl_context *c, enum ctl_value kind)
{
    const char *const *words = ctl_value_words(kind);

    for (; words && *words; words++)
        puts(*words);
    if (kind == CTL_VALUE_COMMAND)
        ctl_complete_put_commands();
    if (kind == CTL_VALUE_LOOP)
        ctl_complete_put_rows(c, "/v1/loops", "loops", false);
    if (kind == CTL_VALUE_LISTENER || kind == CTL_VALUE_PAUSABLE)
        ctl_complete_put_rows(c, "/v1/listeners", "listeners", false);
    if (kind == CTL_VALUE_LIMITS)
        ctl_complete_put_rows(c, "/v1/limits", "limits", false);
    if (kind == CTL_VALUE_UPSTREAM || kind == CTL_VALUE_PAUSABLE)
        ctl_complete_put_rows(c, "/v1/upstreams", "upstreams", false);
    if (kind == CTL_VALUE_SERVER || kind == CTL_VALUE_GROUP)
        ctl_complete_put_rows(c, "/v1/upstreams", "upstreams", true);
}

static const struct ctl_option *ctl_complete_find(const struct ctl_option *options,
                                                  const char *word)
{
    for (; options && options->name; options++)
        if ((strncmp(word, "--", 2) == 0 && strcmp(word + 2, options->name) == 0) ||
            (options->letter && word[1] == options->letter && word[2] == '\0'))
            return options;
    return NULL;
}

static const struct ctl_option *ctl_complete_option(const struct ctl_complete_place *place,
                                                    const char *word)
{
    const struct ctl_option *o = ctl_complete_find(ctl_commands.options, word);

    for (unsigned i = 0; !o && place->command && i < CTL_COMMAND_SETS; i++)
        o = ctl_complete_find(place->command->options[i], word);
    return o;
}

/* Update ${place} by ${word}; false: unknown command. */
static bool ctl_complete_pass(struct ctl_complete_place *place, const char *word)
{
    if (place->option) {
        if (strcmp(place->option->name, "address") == 0)
            place->address = word;
        else if (strcmp(place->option->name, "token-file") == 0)
            place->token_file = word;
        place->option = NULL;
    } else if (word[0] == '-' && word[1] != '\0') {
        place->option = ctl_complete_option(place, word);
        if (place->option && !place->option->value)
            place->option = NULL;
    } else if (place->command) {
        place->n_words++;
    } else {
        place->command = ctl_command_find(&ctl_commands, word);
        return place->command != NULL;
    }
    return true;
}

static void ctl_complete_put_options(const struct ctl_option *options)
{
    for (; options && options->name; options++)
        printf("--%s\n", options->name);
}

static void ctl_complete_put(struct ctl_context *c, const struct ctl_complete_place *place,
                             const char *word)
{
    if (place->option) {
        ctl_complete_put_values(c, place->option->kind);
    } else if (word[0] == '-') {
        ctl_complete_put_options(ctl_commands.options);
        for (unsigned i = 0; place->command && i < CTL_COMMAND_SETS; i++)
            ctl_complete_put_options(place->command->options[i]);
    } else if (!place->command) {
        ctl_complete_put_commands();
    } else if (place->n_words < CTL_COMMAND_WORDS && place->command->words[place->n_words].name) {
        ctl_complete_put_values(c, place->command->words[place->n_words].kind);
    }
}

void ctl_complete_words(int n, char **words)
{
    struct ctl_complete_place place = {.command = NULL};
    struct ctl_context context = {.client = NULL};

    for (int i = 0; i < n - 1; i++)
        if (!ctl_complete_pass(&place, words[i]))
            return;
    if (ctl_context_open(&context, place.address, place.token_file, TIMEOUT_NS) != CTL_EXIT_OK)
        return;
    ctl_complete_put(&context, &place, n > 0 ? words[n - 1] : "");
    ctl_context_close(&context);
}
