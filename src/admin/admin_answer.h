/*
 * admin/admin_answer: answers of handlers, one for each request.
 *
 * The answer to an action is logged: `admin: uid 0 pid 123: POST /v1/reload {}: done`.
 */
#ifndef ADMIN_ADMIN_ANSWER_H
#define ADMIN_ADMIN_ANSWER_H

#include <jansson.h>
#include <stddef.h>

#include "base/must.h"

struct admin_request;

/*
 * admin_answer_json(rq, status, body):
 * Answer ${rq} with ${body}; NULL means out of memory: status 500.
 *
 * Thread: admin loop
 * Owns:   takes ${body}; ${rq} may be freed
 */
void admin_answer_json(struct admin_request *rq, unsigned status, json_t *body);

/*
 * admin_answer_text(rq, status, type, text, n):
 * Answer ${rq} with ${n} bytes of ${text}, of MIME type ${type}; NULL ${text} means out of memory:
 * status 500.
 *
 * Thread: admin loop
 * Owns:   takes ${text}, from malloc(); ${type} must outlive ${rq}, which may be freed
 */
void admin_answer_text(struct admin_request *rq, unsigned status, const char *type, char *text,
                       size_t n);

/*
 * admin_answer_error(rq, status, format, ...):
 * Answer ${rq} with `{"error":"TEXT"}`.
 *
 * Thread: admin loop
 * Owns:   ${rq} may be freed
 */
void admin_answer_error(struct admin_request *rq, unsigned status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/*
 * admin_answer_note(rq, format, ...):
 * Log the action with this text, such as `3 sessions`, instead of `done`. Call this before the
 * answer.
 *
 * Thread: admin loop
 */
void admin_answer_note(struct admin_request *rq, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
