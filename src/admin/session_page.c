#include "admin/session_page.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_answer.h"
#include "admin/admin_request.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "base/text.h"
#include "engine/budget.h"
#include "engine/loop.h"
#include "sessions/session_query.h"
#include "sessions/session_row.h"

#define US_PER_S 1000000

/* Maximum of rows in a step: about 10 us each. */
#define SESSION_PAGE_STEP 32

struct session_page {
    struct task task;
    struct admin_request *request;
    struct session_query_page *page;
    unsigned next;
    struct text text;
};

static void session_page_free(struct session_page *p)
{
    session_query_page_free(p->page);
    text_free(&p->text);
    free(p);
}

static void session_page_refuse(struct session_page *p, const char *why)
{
    struct admin_request *rq = p->request;

    session_page_free(p);
    admin_answer_error(rq, 503, "%s", why);
}

/* ${text} as JSON; if it is not UTF-8, with '?' for each byte that is not ASCII. */
static json_t *session_page_text(const char *text)
{
    json_t *value = text ? json_string(text) : json_null();
    char *copy;

    if (value)
        return value;
    copy = strdup(text);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    value = copy ? json_string(copy) : NULL;
    free(copy);
    return value;
}

/* In percent of the loop's time. */
static json_t *session_page_load(const struct session_row *row)
{
    return row->load_us < 0 ? json_null() : json_real((double)row->load_us * 100 / US_PER_S);
}

static json_t *session_page_row(const struct session_row *row)
{
    char id[SESSION_ID_TEXT_BYTES], client[ADDRESS_TEXT_BYTES];

    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:f, s:f, s:I, s:I, s:s}", "id",
        session_id_format(id, &row->id), "listener", session_page_text(row->listener), "client",
        session_page_text(address_format(client, sizeof(client), &row->client)), "upstream",
        session_page_text(row->upstream), "server", session_page_text(row->server), "loop",
        row->loop, "load", session_page_load(row), "age_s", (double)row->age_ns / NS_PER_S,
        "idle_s", (double)row->idle_ns / NS_PER_S, "bytes_in", (json_int_t)row->bytes_in,
        "bytes_out", (json_int_t)row->bytes_out, "state", row->state);
}

static int session_page_add(const char *bytes, size_t n, void *text)
{
    text_add(text, bytes, n);
    return 0;
}

static void session_page_write(struct session_page *p)
{
    json_t *row = session_page_row(p->page->rows[p->next]);

    if (p->next++ > 0)
        text_puts(&p->text, ",");
    if (!row || json_dump_callback(row, session_page_add, &p->text, JSON_COMPACT) < 0)
        p->text.failed = true;
    json_decref(row);
}

static void session_page_end(struct session_page *p)
{
    char next[SESSION_QUERY_CURSOR_BYTES];
    struct admin_request *rq = p->request;
    struct text text;

    text_printf(&p->text, "],\"matched\":%" PRIu64 ",\"next\":", p->page->matched);
    if (p->page->is_last)
        text_puts(&p->text, "null}\n");
    else
        text_printf(&p->text, "\"%s\"}\n", session_query_cursor_format(next, &p->page->next));
    text = p->text;
    if (text.failed) {
        session_page_refuse(p, "out of memory");
        return;
    }
    p->text = (struct text){.bytes = NULL};
    session_page_free(p);
    admin_answer_text(rq, 200, "application/json", text.bytes, text.n);
}

static void session_page_run(struct task *t)
{
    struct session_page *p = CONTAINER_OF(t, struct session_page, task);
    struct budget step;

    budget_begin_step(&step, clock_now_ns(), BUDGET_STEP_NS, SESSION_PAGE_STEP);
    while (p->next < p->page->n) {
        session_page_write(p);
        if (budget_step_over(&step, false))
            break;
    }
    if (p->next == p->page->n)
        session_page_end(p);
    else if (loop_submit(admin_loop(p->request), LOOP_TAIL, t) < 0)
        session_page_refuse(p, "the process ends");
}

static void session_page_drop(struct task *t)
{
    session_page_refuse(CONTAINER_OF(t, struct session_page, task), "the process ends");
}

static const struct task_type session_page_type = {
    .name = "page of sessions", .run = session_page_run, .drop = session_page_drop};

void session_page_answer(struct admin_request *rq, struct session_query_page *page)
{
    struct session_page *p = calloc(1, sizeof(*p));

    if (!p) {
        session_query_page_free(page);
        admin_answer_error(rq, 503, "out of memory");
        return;
    }
    *p = (struct session_page){.task.type = &session_page_type, .request = rq, .page = page};
    text_puts(&p->text, "{\"sessions\":[");
    session_page_run(&p->task);
}
