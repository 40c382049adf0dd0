/*
 * Fuzz what servers answer to health checks: the line of an agent, and a status line, headers, text
 * and pattern as check/check_script expects them. One verdict, however the answer comes.
 *
 * The first byte says what the rest is; of patterns the first line is the expression.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/must.h"
#include "check/agent.h"
#include "check/check_script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_agent(const uint8_t *data, size_t size)
{
    struct agent_line whole = {0}, parts = {0};
    enum agent_line_state at_once = agent_line_add(&whole, data, size), state = AGENT_LINE_PART;
    struct agent_answer answer;

    for (size_t i = 0; i < size && state == AGENT_LINE_PART; i++)
        state = agent_line_add(&parts, data + i, 1);
    MUST(size == 0 || state == at_once);
    if (at_once != AGENT_LINE_WHOLE)
        return;
    MUST(whole.n == parts.n && strcmp(whole.text, parts.text) == 0 && whole.n < sizeof(whole.text));
    if (agent_parse(&answer, whole.text) == NULL && answer.has_percent)
        MUST(agent_weight(100, answer.percent) <= 256);
}

/* An answer ends the check once at most; returns where. */
static size_t run(const struct check_script *s, const uint8_t *data, size_t size)
{
    struct check_match match;
    unsigned at = 0;
    bool line_start = true;

    for (size_t i = 0; i < size; i++) {
        while (at < s->n && s->steps[at].conf.kind < CHECK_STEP_EXPECT) {
            at++;
            if (at < s->n && s->steps[at].conf.kind >= CHECK_STEP_EXPECT)
                check_match_begin(&match, &s->steps[at], line_start);
        }
        if (at == s->n)
            return i;
        switch (check_match_next(&match, &s->steps[at], &s->conf.http, data[i])) {
        case CHECK_MATCH_WRONG: return i;
        case CHECK_MATCH_FOUND:
            if (++at < s->n && s->steps[at].conf.kind >= CHECK_STEP_EXPECT)
                check_match_begin(&match, &s->steps[at], data[i] == '\n');
            break;
        case CHECK_MATCH_MORE: (void)check_match_is_begun(&match, &s->steps[at]); break;
        }
        line_start = data[i] == '\n';
    }
    return size;
}

static void try_script(struct check_conf conf, const uint8_t *data, size_t size)
{
    struct check_script script;
    int rc;

    conf.timeout_ns = NS_PER_S;
    rc = check_script_init(&script, &conf);
    MUST(rc == 0 || rc == -EINVAL || rc == -EMSGSIZE);
    if (rc < 0)
        return;
    MUST(run(&script, data, size) <= size);
    check_script_end(&script);
}

static void try_http(const uint8_t *data, size_t size)
{
    struct check_conf conf = {.expect = {(const uint8_t *)"okok\n", 5},
                              .http = {.method = "GET", .target = "/", .minor = 1}};

    conf.http.statuses.list[0] = (struct check_http_range){200, 399};
    conf.http.statuses.n = 1;
    try_script(conf, data, size);
}

static void try_pattern(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    struct check_step_conf steps[3] = {{.kind = CHECK_STEP_CONNECT},
                                       {.kind = CHECK_STEP_REFUSE, .text = "-ERR"},
                                       {.kind = CHECK_STEP_EXPECT, .text = "pattern"}};
    char *text;

    if (!end)
        return;
    text = strndup((const char *)data, (size_t)(end - data));
    MUST(text != NULL);
    steps[1].bytes = (struct check_bytes){(const uint8_t *)"-ERR", 4};
    steps[2].pattern = text;
    try_script((struct check_conf){.steps = steps, .n_steps = 3}, end + 1,
               size - (size_t)(end + 1 - data));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    switch (data[0] % 3) {
    case 0: try_agent(data + 1, size - 1); break;
    case 1: try_http(data + 1, size - 1); break;
    case 2: try_pattern(data + 1, size - 1); break;
    }
    return 0;
}
