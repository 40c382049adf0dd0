#include "ctl/ctl_pause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_text.h"
#include "ctl/ctl_upstreams.h"

const struct ctl_option ctl_pause_options[] = {
    {"for", "DURATION", CTL_VALUE_DURATION, "resume after this time (30s)", 0},
    {"max-held", "N", CTL_VALUE_NUMBER, "hold at most N connections to an upstream (1000)", 0},
    {NULL, NULL, 0, NULL, 0},
};

const struct ctl_option ctl_pause_resume_options[] = {
    {"rate", "N", CTL_VALUE_NUMBER, "release N connections per second (0: all at once)", 0},
    {NULL, NULL, 0, NULL, 0},
};

/* The object that a word names: {"listener": ...} or {"upstream": ...}. */
struct ctl_pause_target {
    const char *kind;
    const char *name;
};

/* Look for an object ${name} in the list ${key}. */
static enum ctl_exit ctl_pause_look_up(struct ctl_context *c, const char *key, const char *name,
                                       bool *found)
{
    struct ctl_memory_text path;
    struct ctl_answer answer;
    enum ctl_exit code;
    const json_t *rows;

    ctl_memory_text_open(&path);
    fprintf(path.file, "/v1/%s", key);
    code = ctl_context_get(c, ctl_memory_text_close(&path), &answer);
    free(path.bytes);
    if (code != CTL_EXIT_OK)
        return code;
    rows = ctl_context_rows(c, &answer, key);
    if (!rows)
        ctl_report("%s", c->problem);
    *found = ctl_upstreams_find(rows, name) != NULL;
    ctl_client_drop(&answer);
    return rows ? CTL_EXIT_OK : CTL_EXIT_FAILED;
}

static bool ctl_pause_has_prefix(struct ctl_pause_target *target, const char *word,
                                 const char *kind)
{
    size_t len = strlen(kind);

    if (strncmp(word, kind, len) != 0 || word[len] != ':')
        return false;
    *target = (struct ctl_pause_target){kind, word + len + 1};
    return true;
}

static enum ctl_exit ctl_pause_resolve(struct ctl_context *c, const char *word,
                                       struct ctl_pause_target *target)
{
    bool is_listener = false, is_upstream = false;
    enum ctl_exit code;

    if (ctl_pause_has_prefix(target, word, "listener") ||
        ctl_pause_has_prefix(target, word, "upstream"))
        return CTL_EXIT_OK;
    code = ctl_pause_look_up(c, "listeners", word, &is_listener);
    if (code == CTL_EXIT_OK)
        code = ctl_pause_look_up(c, "upstreams", word, &is_upstream);
    if (code != CTL_EXIT_OK)
        return code;
    if (is_listener && is_upstream) {
        ctl_report("'%s' is a listener and an upstream: write listener:%s or upstream:%s", word,
                   word, word);
        return CTL_EXIT_FAILED;
    }
    if (!is_listener && !is_upstream) {
        ctl_report("there is no listener or upstream '%s'", word);
        return CTL_EXIT_REFUSED;
    }
    *target = (struct ctl_pause_target){is_listener ? "listener" : "upstream", word};
    return CTL_EXIT_OK;
}

static json_t *ctl_pause_body(const struct ctl_pause_target *target)
{
    return ctl_memory_need(json_pack("{s:s}", target->kind, target->name));
}

static void ctl_pause_add_number(json_t *body, const struct ctl_arguments *a, const char *option,
                                 const char *key)
{
    const char *text = ctl_arguments_value(a, option);
    json_t *number;

    if (!text)
        return;
    number = json_integer(ctl_value_number(CTL_VALUE_NUMBER, text));
    ctl_memory_need(json_object_set_new(body, key, number) == 0 ? body : NULL);
}

static enum ctl_exit ctl_pause_post(struct ctl_context *c, const char *path,
                                    const struct ctl_pause_target *target, json_t *body)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_post(c, path, body, &answer);
    const char *state;
    char *clean;

    if (code != CTL_EXIT_OK)
        return code;
    state = json_string_value(json_object_get(answer.json, "state"));
    clean = ctl_text_clean(state ? state : "done");
    if (c->prints_json)
        ctl_print_json(&answer);
    else
        printf("%s %s: %s\n", target->kind, target->name, clean);
    free(clean);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

enum ctl_exit ctl_pause_begin(struct ctl_context *c, const struct ctl_arguments *a)
{
    const char *time = ctl_arguments_value(a, "for");
    struct ctl_pause_target target;
    enum ctl_exit code = ctl_pause_resolve(c, a->words[0], &target);
    json_t *body;

    if (code != CTL_EXIT_OK)
        return code;
    body = ctl_pause_body(&target);
    ctl_pause_add_number(body, a, "max-held", "max_held");
    if (time)
        ctl_memory_need(json_object_set_new(body, "for", json_string(time)) == 0 ? body : NULL);
    return ctl_pause_post(c, "/v1/pause", &target, body);
}

enum ctl_exit ctl_pause_end(struct ctl_context *c, const struct ctl_arguments *a)
{
    struct ctl_pause_target target;
    enum ctl_exit code = ctl_pause_resolve(c, a->words[0], &target);
    json_t *body;

    if (code != CTL_EXIT_OK)
        return code;
    body = ctl_pause_body(&target);
    ctl_pause_add_number(body, a, "rate", "rate");
    return ctl_pause_post(c, "/v1/resume", &target, body);
}
