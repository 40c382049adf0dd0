#include "ctl/ctl_top_sample.h"

#include <stdio.h>

#include "base/clock.h"
#include "ctl/ctl_memory.h"
#include "ctl/ctl_upstreams.h"

#define PATH_BYTES  64
#define EVENTS_PATH "/v1/events?limit=20"

/* Ask for the array ${key} at ${path}. */
static enum ctl_exit ctl_top_sample_rows(struct ctl_context *c, const char *path, const char *key,
                                         json_t **out)
{
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_try(c, &(struct ctl_request){.path = path}, &answer);
    json_t *rows;

    if (code != CTL_EXIT_OK)
        return code;
    rows = ctl_context_rows(c, &answer, key);
    *out = json_incref(rows);
    ctl_client_drop(&answer);
    return rows ? CTL_EXIT_OK : CTL_EXIT_FAILED;
}

static enum ctl_exit ctl_top_sample_upstreams(struct ctl_context *c, json_t **out)
{
    json_t *upstreams;
    enum ctl_exit code = ctl_top_sample_rows(c, "/v1/upstreams", "upstreams", &upstreams);

    if (code != CTL_EXIT_OK)
        return code;
    *out = ctl_upstreams_flat(upstreams);
    json_decref(upstreams);
    return CTL_EXIT_OK;
}

/* The last events, the newest first. */
static enum ctl_exit ctl_top_sample_events(struct ctl_context *c, json_t **out)
{
    json_t *rows;
    enum ctl_exit code = ctl_top_sample_rows(c, EVENTS_PATH, "events", &rows);

    if (code != CTL_EXIT_OK)
        return code;
    *out = ctl_memory_need(json_array());
    for (size_t i = json_array_size(rows); i-- > 0;)
        ctl_memory_need(json_array_append(*out, json_array_get(rows, i)) == 0 ? rows : NULL);
    json_decref(rows);
    return CTL_EXIT_OK;
}

static enum ctl_exit ctl_top_sample_sessions(struct ctl_context *c, const char *sort, unsigned n,
                                             json_t **out)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "/v1/sessions?sort=%s&limit=%u", sort, n);
    return ctl_top_sample_rows(c, path, "sessions", out);
}

static enum ctl_exit ctl_top_sample_status(struct ctl_context *c, json_t **out)
{
    const struct ctl_request request = {.path = "/v1/status"};
    struct ctl_answer answer;
    enum ctl_exit code = ctl_context_try(c, &request, &answer);

    if (code != CTL_EXIT_OK)
        return code;
    *out = json_incref(answer.json);
    ctl_client_drop(&answer);
    return CTL_EXIT_OK;
}

enum ctl_exit ctl_top_sample_take(struct ctl_context *c, const char *sort, unsigned n_sessions,
                                  struct ctl_top_sample *out)
{
    struct ctl_top_sample s = {.at_ns = clock_now_ns()};
    enum ctl_exit code = ctl_top_sample_status(c, &s.status);

    if (code == CTL_EXIT_OK)
        code = ctl_top_sample_rows(c, "/v1/loops", "loops", &s.rows[CTL_TOP_LOOPS]);
    if (code == CTL_EXIT_OK)
        code = ctl_top_sample_rows(c, "/v1/listeners", "listeners", &s.rows[CTL_TOP_LISTENERS]);
    if (code == CTL_EXIT_OK)
        code = ctl_top_sample_upstreams(c, &s.rows[CTL_TOP_UPSTREAMS]);
    if (code == CTL_EXIT_OK)
        code = ctl_top_sample_events(c, &s.rows[CTL_TOP_EVENTS]);
    if (code == CTL_EXIT_OK)
        code = ctl_top_sample_sessions(c, sort, n_sessions, &s.rows[CTL_TOP_SESSIONS]);
    if (code == CTL_EXIT_OK)
        *out = s;
    else
        ctl_top_sample_drop(&s);
    return code;
}

void ctl_top_sample_drop(struct ctl_top_sample *sample)
{
    json_decref(sample->status);
    for (unsigned i = 0; i < CTL_TOP_SECTIONS; i++)
        json_decref(sample->rows[i]);
    *sample = (struct ctl_top_sample){.status = NULL};
}
