#include "admin/route_history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin_answer.h"
#include "admin/admin_field.h"
#include "admin/admin_history.h"
#include "admin/admin_request.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "base/text.h"
#include "stats/events.h"
#include "stats/history.h"

static void route_history_answer(struct admin_request *rq, struct text *text)
{
    text_puts(text, "}\n");
    if (!text->failed) {
        admin_answer_text(rq, 200, "application/json", text->bytes, text->n);
        return;
    }
    text_free(text);
    admin_answer_error(rq, 503, "out of memory");
}

static void route_history_events(struct admin_request *rq)
{
    struct text text = {.bytes = NULL};
    uint64_t after = 0, limit = EVENTS_MAX;

    if (!admin_field_number(rq, "after", 0, INT64_MAX, &after) ||
        !admin_field_number(rq, "limit", 1, EVENTS_MAX, &limit))
        return;
    text_puts(&text, "{");
    events_json(admin_of(rq)->events, after, (unsigned)limit, &text);
    text_printf(&text, ",\"pid\":%d", (int)getpid());
    route_history_answer(rq, &text);
}

/* Find what `object` names: process, listener/NAME, upstream/NAME or loop/NAME. */
static bool route_history_object(struct history_query *query, const char *object)
{
    static const struct {
        const char *prefix;
        enum figure_subject subject;
    } kinds[] = {
        {"listener/", FIGURE_LISTENER}, {"upstream/", FIGURE_UPSTREAM}, {"loop/", FIGURE_LOOP}};

    query->subject = FIGURE_PROCESS;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        size_t n = strlen(kinds[i].prefix);

        if (strncmp(object, kinds[i].prefix, n) != 0)
            continue;
        query->subject = kinds[i].subject;
        query->name = object + n;
    }
    return query->name || strcmp(object, "process") == 0;
}

static void route_history_samples(struct admin_request *rq, const char *object)
{
    struct history *h = admin_history_of(admin_of(rq)->history);
    struct history_query query = {.name = NULL};
    struct text text = {.bytes = NULL};
    uint64_t step_s = 1;
    int level;

    if (!admin_field_number(rq, "step", 1, UINT32_MAX, &step_s) ||
        !admin_field_number(rq, "after", 0, INT64_MAX, &query.after))
        return;
    level = history_level(h, (unsigned)step_s);
    if (level < 0) {
        admin_answer_error(rq, 404, "no samples of %" PRIu64 " s are kept: see steps_s", step_s);
        return;
    }
    query.level = (unsigned)level;
    text_puts(&text, "{");
    if (route_history_object(&query, object) && history_json(h, &query, clock_now_ns(), &text)) {
        route_history_answer(rq, &text);
        return;
    }
    text_free(&text);
    admin_answer_error(rq, 404,
                       "%s has no history (process, listener/NAME, upstream/NAME, "
                       "loop/NAME)",
                       object);
}

static void route_history_show(struct admin_request *rq)
{
    struct text text = {.bytes = NULL};
    const char *object = NULL;

    if (!admin_field_text(rq, "object", &object))
        return;
    if (object) {
        route_history_samples(rq, object);
        return;
    }
    text_puts(&text, "{");
    history_json_objects(admin_history_of(admin_of(rq)->history), &text);
    route_history_answer(rq, &text);
}

static const char *const event_fields[] = {"after", "limit", NULL};
static const char *const history_fields[] = {"object", "step", "after", NULL};

static const struct admin_route list[] = {
    {"GET", "/v1/events", ADMIN_READ, event_fields, route_history_events},
    {"GET", "/v1/history", ADMIN_READ, history_fields, route_history_show},
};

const struct admin_routes route_history = {list, ARRAY_LEN(list)};
