#include "ctl/ctl_move.h"

#include <stdio.h>

#include "ctl/ctl_filter.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_print.h"
#include "ctl/ctl_report.h"

const struct ctl_option ctl_move_options[] = {
    {"to", "LOOP", CTL_VALUE_LOOP, "worker loop that gets the sessions (required)", 0},
    {"all", NULL, 0, "all sessions", 0},
    {NULL, NULL, 0, NULL, 0},
};

static enum ctl_exit ctl_move_misuse(const char *why)
{
    ctl_report("move: %s", why);
    return CTL_EXIT_FAILED;
}

static long long ctl_move_number(const json_t *answer, const char *key)
{
    return json_integer_value(json_object_get(answer, key));
}

static void ctl_move_add(json_t *body, const char *key, json_t *value)
{
    ctl_memory_need(json_object_set_new(body, key, value) == 0 ? body : NULL);
}

static void ctl_move_print(const json_t *answer)
{
    long long moved = ctl_move_number(answer, "moved");

    printf("moved %lld %s; %lld were there, %lld cannot move now, %lld failed\n", moved,
           moved == 1 ? "session" : "sessions", ctl_move_number(answer, "there"),
           ctl_move_number(answer, "busy"), ctl_move_number(answer, "failed"));
}

static enum ctl_exit ctl_move_send(struct ctl_context *c, json_t *body)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_post(c, "/v1/sessions/move", body, &answer);
    bool has_failed;

    if (code != CTL_EXIT_OK)
        return code;
    has_failed = ctl_move_number(answer.json, "failed") > 0;
    code = ctl_print_answer(c, &answer, ctl_move_print);
    return has_failed ? CTL_EXIT_REFUSED : code;
}

enum ctl_exit ctl_move_sessions(struct ctl_context *c, const struct ctl_arguments *a)
{
    bool all = ctl_arguments_has(a, "all"), has_id = a->n_words > 0;
    json_t *body;

    if (!ctl_arguments_has(a, "to"))
        return ctl_move_misuse("--to LOOP is missing");
    if (all + has_id + ctl_filter_is_given(a) != 1)
        return ctl_move_misuse("give either an ID, or filters such as --loop NAME, or --all");
    body = has_id ? ctl_memory_need(json_object()) : ctl_filter_body(a);
    if (has_id)
        ctl_move_add(body, "id", json_string(a->words[0]));
    if (all)
        ctl_move_add(body, "all", json_true());
    ctl_move_add(body, "to", json_string(ctl_arguments_value(a, "to")));
    return ctl_move_send(c, body);
}

static double ctl_move_percent(const json_t *answer, const char *key)
{
    return json_number_value(json_object_get(answer, key));
}

static void ctl_move_print_rebalance(const json_t *answer)
{
    const char *from = json_string_value(json_object_get(answer, "from"));
    long long moved = ctl_move_number(answer, "moved");

    if (!from) {
        puts("no loop has much more load than another: nothing moves");
        return;
    }
    printf("moved %lld %s from %s (busy %.0f%%; the idlest, %s: %.0f%%); %lld are too heavy, %lld "
           "cannot move now, %lld failed\n",
           moved, moved == 1 ? "session" : "sessions", from, ctl_move_percent(answer, "load"),
           json_string_value(json_object_get(answer, "idlest")),
           ctl_move_percent(answer, "idlest_load"), ctl_move_number(answer, "heavy"),
           ctl_move_number(answer, "busy"), ctl_move_number(answer, "failed"));
}

enum ctl_exit ctl_move_rebalance(struct ctl_context *c, const struct ctl_arguments *a)
{
    struct ctl_answer answer;
    enum ctl_exit code =
        ctl_context_post(c, "/v1/rebalance", ctl_memory_need(json_object()), &answer);

    (void)a;
    return code == CTL_EXIT_OK ? ctl_print_answer(c, &answer, ctl_move_print_rebalance) : code;
}
