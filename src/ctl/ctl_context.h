/*
 * ctl/ctl_context: what all commands share: requests to the daemon, and output.
 */
#ifndef CTL_CTL_CONTEXT_H
#define CTL_CTL_CONTEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "ctl/ctl_client.h"
#include "ctl/ctl_exit.h"

#define CTL_CONTEXT_PROBLEM_BYTES 1024

struct ctl_context {
    struct ctl_client_conf conf;
    struct ctl_client *client; /* NULL: the command needs no daemon */
    char *token;               /* NULL: none */
    bool prints_json;
    char problem[CTL_CONTEXT_PROBLEM_BYTES]; /* why the last request failed */
    bool is_late;    /* the last request timed out, and may still be carried out */
    bool is_unknown; /* what the last request names does not exist */
};

/*
 * ctl_context_open(c, address, token_file, timeout_ns) / ctl_context_close(c):
 * Create the client (${address} NULL: $REACTORCTL_ADDRESS or the default) and report problems /
 * free the client.
 *
 * Owns:   ${c} is zeroed before; ${address} must outlive ${c}
 */
enum ctl_exit ctl_context_open(struct ctl_context *c, const char *address, const char *token_file,
                               int64_t timeout_ns) NODISCARD;
void ctl_context_close(struct ctl_context *c);

/*
 * ctl_context_try(c, request, out):
 * Ask the daemon. After a failure or refusal c->problem says why; nothing is printed.
 *
 * Owns:   CTL_EXIT_OK: the caller passes ${out} to ctl_client_drop()
 */
enum ctl_exit ctl_context_try(struct ctl_context *c, const struct ctl_request *request,
                              struct ctl_answer *out) NODISCARD;

/*
 * ctl_context_get(c, path, out) / ctl_context_post(c, path, body, out) /
 * ctl_context_send(c, request, out):
 * Call ctl_context_try() with GET / POST / ${request}, and report a problem.
 *
 * Owns:   ctl_context_post() takes over the reference to ${body}
 */
enum ctl_exit ctl_context_get(struct ctl_context *c, const char *path,
                              struct ctl_answer *out) NODISCARD;
enum ctl_exit ctl_context_post(struct ctl_context *c, const char *path, json_t *body,
                               struct ctl_answer *out) NODISCARD;
enum ctl_exit ctl_context_send(struct ctl_context *c, const struct ctl_request *request,
                               struct ctl_answer *out) NODISCARD;

/*
 * ctl_context_rows(c, answer, key):
 * Return the array of objects ${key} of an answer, borrowed; NULL: none, see c->problem.
 */
json_t *ctl_context_rows(struct ctl_context *c, const struct ctl_answer *answer, const char *key);

#endif
