#include "admin/admin_answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_client.h"
#include "admin/admin_http.h"
#include "admin/admin_types.h"
#include "base/text_stream.h"
#include "engine/loop.h"

/* Maximum bytes of an action's fields in the log. */
#define SHOWN_BYTES 300

#define STATUS_IS_ERROR 400

/* Longest error, with NUL. */
#define ERROR_BYTES 512

static const char type_json[] = "application/json";

/* The body if memory is short; without memory for its copy, the answer is empty. */
static const char no_memory[] = "{\"error\":\"out of memory\"}\n";

static void admin_answer_log(const struct admin_request *rq, const char *error)
{
    char *fields = rq->fields
                       ? json_dumps(rq->fields, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_SORT_KEYS)
                       : NULL;

    log_event(LOG_ADMIN, LOG_LEVEL_NOTICE, "admin: %s: %s %s %.*s: %s%s", rq->client->name,
              rq->route->method, rq->route->path, SHOWN_BYTES, fields ? fields : "{}",
              error ? "refused: " : "",
              error                 ? error
              : rq->note[0] != '\0' ? rq->note
                                    : "done");
    free(fields);
}

static void admin_answer_give(struct admin_request *rq, const struct admin_answer *answer,
                              const char *error)
{
    struct admin_client *c = rq->client;

    MUST(loop_is_current(c->admin->loop));
    MUST(rq->state != ADMIN_REQUEST_ANSWERED);
    rq->answer.status = answer->status;
    rq->answer.type = answer->type;
    rq->answer.text = answer->text;
    rq->answer.n = answer->n;
    if (!rq->answer.text) {
        rq->answer.status = 500;
        rq->answer.type = type_json;
        rq->answer.text = strdup(no_memory);
        rq->answer.n = rq->answer.text ? strlen(no_memory) : 0;
    }
    if (rq->route && rq->route->access == ADMIN_ACTION)
        admin_answer_log(rq, error);
    rq->state = ADMIN_REQUEST_ANSWERED;
    if (rq->untimed)
        admin_client_restart(c);
    if (rq->suspended)
        admin_http_resume(c->admin->http, rq);
}

/* Return ${body} as ${n} bytes of text with a line end, and free ${body}. NULL: out of memory. */
static char *admin_answer_write(json_t *body, size_t *n)
{
    char *text = NULL;
    FILE *f = body ? open_memstream(&text, n) : NULL;
    bool ok = false;

    if (f) {
        ok = json_dumpf(body, f, JSON_COMPACT) == 0 && fputc('\n', f) != EOF;
        ok = text_stream_close(f, &text) == 0 && ok;
    }
    json_decref(body);
    if (ok)
        return text;
    free(text);
    return NULL;
}

static void admin_answer_body(struct admin_request *rq, unsigned status, json_t *body,
                              const char *error)
{
    struct admin_answer answer = {.status = status, .type = type_json};

    answer.text = admin_answer_write(body, &answer.n);
    admin_answer_give(rq, &answer, error);
}

void admin_answer_json(struct admin_request *rq, unsigned status, json_t *body)
{
    const char *error = json_string_value(json_object_get(body, "error"));
    char text[ERROR_BYTES];

    snprintf(text, sizeof(text), "%s", error ? error : "");
    admin_answer_body(rq, status, body, status >= STATUS_IS_ERROR ? text : NULL);
}

void admin_answer_text(struct admin_request *rq, unsigned status, const char *type, char *text,
                       size_t n)
{
    const struct admin_answer answer = {.status = status, .type = type, .text = text, .n = n};

    admin_answer_give(rq, &answer, NULL);
}

void admin_answer_error(struct admin_request *rq, unsigned status, const char *format, ...)
{
    char text[ERROR_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (char *p = text; *p != '\0'; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    admin_answer_body(rq, status, json_pack("{s:s}", "error", text), text);
}

void admin_answer_note(struct admin_request *rq, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(rq->note, sizeof(rq->note), format, args);
    va_end(args);
}
