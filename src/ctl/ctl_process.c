#include "ctl/ctl_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_text.h"

#define WAIT_INTERVAL_NS (500 * NS_PER_MS)

const struct ctl_option ctl_process_reload_options[] = {
    {"dry-run", NULL, 0, "list the changes without applying them", 0},
    {"confirm", "DURATION", CTL_VALUE_DURATION,
     "restore the previous configuration unless confirmed within this time", 0},
    {"wait", NULL, 0, "wait until the reload is done; with --confirm, confirmed or reverted", 0},
    {NULL, NULL, 0, NULL, 0},
};

/* ---- settings ---- */

/* Return the body of a request to change a setting; NULL: wrong usage, which was reported. */
static json_t *ctl_process_setting(const char *name, const char *value)
{
    bool is_ratio = strcmp(name, "io_ratio") == 0;
    enum ctl_value kind = is_ratio ? CTL_VALUE_PERCENT : CTL_VALUE_NUMBER;
    const char *problem;

    if (!is_ratio && strcmp(name, "workers") != 0)
        return ctl_memory_need(json_pack("{s:s}", name, value));
    problem = ctl_value_check(kind, value);
    if (problem) {
        ctl_report("%s: '%s' %s", name, value, problem);
        return NULL;
    }
    return ctl_memory_need(json_pack("{s:I}", name, (json_int_t)ctl_value_number(kind, value)));
}

/* Print the new values, each as `name = value`. */
static void ctl_process_print_values(json_t *values)
{
    const char *name;
    json_t *value;

    json_object_foreach(values, name, value)
    {
        char *text = json_is_string(value) ? strdup(json_string_value(value))
                                           : json_dumps(value, JSON_ENCODE_ANY);
        char *clean_name = ctl_text_clean(name), *clean = ctl_text_clean(ctl_memory_need(text));

        printf("%s = %s\n", clean_name, clean);
        free(clean_name);
        free(clean);
        free(text);
    }
}

enum ctl_exit ctl_process_set(struct ctl_context *c, const struct ctl_arguments *a)
{
    json_t *body = ctl_process_setting(a->words[0], a->words[1]);
    struct ctl_answer answer;
    enum ctl_exit code;

    if (!body)
        return CTL_EXIT_FAILED;
    code = ctl_context_post(c, "/v1/set", body, &answer);
    if (code != CTL_EXIT_OK)
        return code;
    if (c->prints_json)
        ctl_print_json(&answer);
    else
        ctl_process_print_values(answer.json);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

/* ---- actions without arguments ---- */

static enum ctl_exit ctl_process_do(struct ctl_context *c, const char *path, const char *done)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_post(c, path, ctl_memory_need(json_object()), &answer);

    if (code != CTL_EXIT_OK)
        return code;
    if (c->prints_json)
        ctl_print_json(&answer);
    else
        puts(done);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

enum ctl_exit ctl_process_reset(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_process_do(c, "/v1/reset",
                          "reset: servers, weights, states and settings are those of the "
                          "configuration");
}

enum ctl_exit ctl_process_confirm(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_process_do(c, "/v1/confirm", "confirmed");
}

enum ctl_exit ctl_process_revert(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_process_do(c, "/v1/revert", "the previous configuration is in use");
}

enum ctl_exit ctl_process_upgrade(struct ctl_context *c, const struct ctl_arguments *a)
{
    (void)a;
    return ctl_process_do(c, "/v1/upgrade", "upgraded: a new process serves");
}

/* ---- reload ---- */

struct ctl_process_reload_state {
    char word[32]; /* idle, applying or unconfirmed */
    long long done, reverted;
};

static enum ctl_exit ctl_process_look(struct ctl_context *c, struct ctl_process_reload_state *out)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_get(c, "/v1/status", &answer);
    const json_t *reload;
    const char *word;

    if (code != CTL_EXIT_OK)
        return code;
    reload = json_object_get(answer.json, "reload");
    word = json_string_value(json_object_get(reload, "state"));
    if (word) {
        snprintf(out->word, sizeof(out->word), "%s", word);
        out->done = json_integer_value(json_object_get(reload, "count"));
        out->reverted = json_integer_value(json_object_get(reload, "reverted"));
    } else {
        ctl_report("the answer does not tell the state of the reload");
        code = CTL_EXIT_FAILED;
    }
    ctl_client_drop(&answer);
    return code;
}

static enum ctl_exit ctl_process_wait_while(struct ctl_context *c, const char *word,
                                            struct ctl_process_reload_state *state)
{
    const struct timespec interval = {.tv_nsec = WAIT_INTERVAL_NS};
    enum ctl_exit code;

    while ((code = ctl_process_look(c, state)) == CTL_EXIT_OK && strcmp(state->word, word) == 0)
        nanosleep(&interval, NULL);
    return code;
}

/* Wait for the end of the reload: `count` tells whether it was applied. */
static enum ctl_exit ctl_process_wait_applied(struct ctl_context *c, long long done_before)
{
    struct ctl_process_reload_state state;
    enum ctl_exit code = ctl_process_wait_while(c, "applying", &state);

    if (code != CTL_EXIT_OK)
        return code;
    if (state.done == done_before) {
        ctl_report("the reload was refused; reactord's log says why");
        return CTL_EXIT_REFUSED;
    }
    return CTL_EXIT_OK;
}

/*
 * Wait until nothing waits to be confirmed. Meanwhile other reloads may be tried, refused or done:
 * SIGHUP confirms by one.
 */
static enum ctl_exit ctl_process_wait_confirmed(struct ctl_context *c, long long reverted_before)
{
    struct ctl_process_reload_state state;
    bool was_unconfirmed = false;
    enum ctl_exit code;

    do {
        code = ctl_process_wait_while(c, "applying", &state);
        if (code == CTL_EXIT_OK && strcmp(state.word, "unconfirmed") == 0) {
            was_unconfirmed = true;
            code = ctl_process_wait_while(c, "unconfirmed", &state);
        }
    } while (code == CTL_EXIT_OK && strcmp(state.word, "idle") != 0);
    if (code != CTL_EXIT_OK)
        return code;
    if (state.reverted != reverted_before) {
        ctl_report("not confirmed: the previous configuration is in use");
        return CTL_EXIT_REFUSED;
    }
    if (was_unconfirmed && !c->prints_json)
        puts("confirmed");
    return CTL_EXIT_OK;
}

static void ctl_process_print_changes(const json_t *changes, const struct ctl_arguments *a)
{
    const char *confirm = ctl_arguments_value(a, "confirm");
    size_t n = json_array_size(changes), i;
    const json_t *change;

    json_array_foreach(changes, i, change)
    {
        char *clean = ctl_text_clean(json_is_string(change) ? json_string_value(change) : "?");

        puts(clean);
        free(clean);
    }
    if (ctl_arguments_has(a, "dry-run"))
        printf("%zu %s, none was made\n", n, n == 1 ? "change" : "changes");
    else if (n == 0)
        puts("reload: nothing has changed");
    else if (confirm)
        printf("reload: done; `reactorctl confirm` within %s keeps it\n", confirm);
    else
        puts("reload: done");
    fflush(stdout);
}

static json_t *ctl_process_reload_body(const struct ctl_arguments *a)
{
    const char *confirm = ctl_arguments_value(a, "confirm");
    json_t *body = ctl_memory_need(json_object());

    if (ctl_arguments_has(a, "dry-run"))
        ctl_memory_need(json_object_set_new(body, "dry_run", json_true()) == 0 ? body : NULL);
    if (confirm)
        ctl_memory_need(json_object_set_new(body, "confirm", json_string(confirm)) == 0 ? body
                                                                                        : NULL);
    return body;
}

/* Send the request; with --wait, its timeout does not end the wait. ${before}: the state before. */
static enum ctl_exit ctl_process_send_reload(struct ctl_context *c, const struct ctl_arguments *a,
                                             struct ctl_process_reload_state *before)
{
    bool waits = ctl_arguments_has(a, "wait");
    enum ctl_exit code = waits ? ctl_process_look(c, before) : CTL_EXIT_OK;
    struct ctl_answer answer;
    json_t *body;

    if (code != CTL_EXIT_OK)
        return code;
    body = ctl_process_reload_body(a);
    code = ctl_context_try(c, &(struct ctl_request){.path = "/v1/reload", .body = body}, &answer);
    json_decref(body);
    if (code != CTL_EXIT_OK && c->is_late && waits)
        return ctl_process_wait_applied(c, before->done);
    if (code != CTL_EXIT_OK) {
        ctl_report("%s", c->problem);
        return code;
    }
    if (c->prints_json)
        ctl_print_json(&answer);
    else
        ctl_process_print_changes(json_object_get(answer.json, "changes"), a);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

enum ctl_exit ctl_process_reload(struct ctl_context *c, const struct ctl_arguments *a)
{
    bool tries = ctl_arguments_has(a, "dry-run"), confirms = ctl_arguments_has(a, "confirm");
    struct ctl_process_reload_state before = {.done = 0};
    enum ctl_exit code;

    if (tries && (confirms || ctl_arguments_has(a, "wait"))) {
        ctl_report("reload: --dry-run changes nothing: there is nothing to confirm or wait for");
        return CTL_EXIT_FAILED;
    }
    code = ctl_process_send_reload(c, a, &before);
    if (code == CTL_EXIT_OK && confirms && ctl_arguments_has(a, "wait"))
        return ctl_process_wait_confirmed(c, before.reverted);
    return code;
}
