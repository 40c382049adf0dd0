#include "ctl/ctl_kill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl_filter.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"

#define ANSWER_BYTES 16

const struct ctl_option ctl_kill_options[] = {
    {"all", NULL, 0, "all sessions", 0},
    {"dry-run", NULL, 0, "show the number of sessions that match, end none", 0},
    {"yes", NULL, 0, "do not ask for confirmation", 'y'},
    {NULL, NULL, 0, NULL, 0},
};

const struct ctl_option ctl_kill_shed_options[] = {
    {"percent", "N", CTL_VALUE_PERCENT, "share of the sessions to end (required)", 0},
    {"over", "DURATION", CTL_VALUE_DURATION, "time over which they end (10s)", 0},
    {NULL, NULL, 0, NULL, 0},
};

static const char *ctl_kill_plural(long long n)
{
    return n == 1 ? "session" : "sessions";
}

/* Count the sessions that match the filters; ${answer} is for --json. */
static enum ctl_exit ctl_kill_count(struct ctl_context *c, const struct ctl_arguments *a,
                                    struct ctl_answer *answer, long long *n)
{
    struct ctl_memory_text path;
    enum ctl_exit code;

    ctl_memory_text_open(&path);
    fputs("/v1/sessions?limit=1", path.file);
    ctl_filter_put_query(path.file, a);
    code = ctl_context_get(c, ctl_memory_text_close(&path), answer);
    free(path.bytes);
    if (code == CTL_EXIT_OK)
        *n = json_integer_value(json_object_get(answer->json, "matched"));
    return code;
}

static enum ctl_exit ctl_kill_try(struct ctl_context *c, const struct ctl_arguments *a)
{
    struct ctl_answer answer;
    long long n;
    enum ctl_exit code = ctl_kill_count(c, a, &answer, &n);

    if (code != CTL_EXIT_OK)
        return code;
    if (c->prints_json)
        ctl_print_json(&answer);
    else
        printf("%lld %s would be killed\n", n, ctl_kill_plural(n));
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

/* Ask the user; CTL_EXIT_OK: the user agrees. */
static enum ctl_exit ctl_kill_ask(struct ctl_context *c, const struct ctl_arguments *a)
{
    struct ctl_answer answer;
    char line[ANSWER_BYTES];
    long long n;
    enum ctl_exit code = ctl_kill_count(c, a, &answer, &n);

    if (code != CTL_EXIT_OK)
        return code;
    ctl_client_drop(&answer);
    fprintf(stderr, "Kill %lld %s? [y/N] ", n, ctl_kill_plural(n));
    fflush(stderr);
    if (fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y'))
        return CTL_EXIT_OK;
    ctl_report("nothing was killed");
    return CTL_EXIT_REFUSED;
}

static enum ctl_exit ctl_kill_send(struct ctl_context *c, json_t *body, bool is_one)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_post(c, "/v1/sessions/kill", body, &answer);
    long long n;

    if (code != CTL_EXIT_OK)
        return code;
    n = json_integer_value(json_object_get(answer.json, "killed"));
    if (c->prints_json)
        ctl_print_json(&answer);
    else if (!is_one || n > 0)
        printf("killed %lld %s\n", n, ctl_kill_plural(n));
    ctl_client_drop(&answer);
    if (is_one && n == 0) {
        ctl_report("no session has this ID: it may have ended");
        return CTL_EXIT_REFUSED;
    }
    return CTL_EXIT_OK;
}

static enum ctl_exit ctl_kill_misuse(const char *why)
{
    ctl_report("kill: %s", why);
    return CTL_EXIT_FAILED;
}

static enum ctl_exit ctl_kill_id(struct ctl_context *c, const struct ctl_arguments *a)
{
    if (ctl_filter_is_given(a) || ctl_arguments_has(a, "all"))
        return ctl_kill_misuse("give an ID or filters, not both");
    if (ctl_arguments_has(a, "dry-run"))
        return ctl_kill_misuse("--dry-run is for filters, not for an ID");
    return ctl_kill_send(c, ctl_memory_need(json_pack("{s:s}", "id", a->words[0])), true);
}

enum ctl_exit ctl_kill_sessions(struct ctl_context *c, const struct ctl_arguments *a)
{
    bool all = ctl_arguments_has(a, "all");
    json_t *body;

    if (a->n_words > 0)
        return ctl_kill_id(c, a);
    if (all == ctl_filter_is_given(a))
        return ctl_kill_misuse(all ? "give filters or --all, not both"
                                   : "give an ID, a filter such as --client 10.0.0.0/8, or --all");
    if (ctl_arguments_has(a, "dry-run"))
        return ctl_kill_try(c, a);
    if (isatty(STDIN_FILENO) && !ctl_arguments_has(a, "yes")) {
        enum ctl_exit code = ctl_kill_ask(c, a);

        if (code != CTL_EXIT_OK)
            return code;
    }
    body = ctl_filter_body(a);
    if (all)
        ctl_memory_need(json_object_set_new(body, "all", json_true()) == 0 ? body : NULL);
    return ctl_kill_send(c, body, false);
}

enum ctl_exit ctl_kill_shed(struct ctl_context *c, const struct ctl_arguments *a)
{
    const char *percent = ctl_arguments_value(a, "percent"), *over = ctl_arguments_value(a, "over");
    const char *key = strchr(a->words[0], '/') ? "server" : "upstream";
    struct ctl_answer answer;
    enum ctl_exit code;
    long long n;

    if (!percent) {
        ctl_report("shed needs --percent N");
        return CTL_EXIT_FAILED;
    }
    if (!over)
        over = "10s";
    code = ctl_context_post(
        c, "/v1/shed",
        ctl_memory_need(json_pack("{s:s, s:I, s:s}", key, a->words[0], "percent",
                                  (json_int_t)ctl_value_number(CTL_VALUE_PERCENT, percent), "over",
                                  over)),
        &answer);
    if (code != CTL_EXIT_OK)
        return code;
    n = json_integer_value(json_object_get(answer.json, "sessions"));
    if (c->prints_json)
        ctl_print_json(&answer);
    else
        printf("%lld %s of %s will end within %s, the idlest first\n", n, ctl_kill_plural(n),
               a->words[0], over);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}
