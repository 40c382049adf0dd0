/*
 * ctl/ctl_client: HTTP client of the admin interface, on libcurl.
 */
#ifndef CTL_CTL_CLIENT_H
#define CTL_CTL_CLIENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "ctl/ctl_address.h"

struct ctl_client;

struct ctl_client_conf {
    struct ctl_address address;
    const char *token; /* token for TCP; NULL: none */
    int64_t timeout_ns;
    /* Called at least once a second during a request: true cancels the request. May be NULL. */
    bool (*is_cancelled)(void *cookie);
    void *cookie;
};

struct ctl_request {
    const char *path;   /* with its query */
    const json_t *body; /* NULL: GET */
    const char *method; /* of a request with a body; NULL: POST */
    bool wants_text;    /* the answer must be text, not JSON */
};

struct ctl_answer {
    unsigned status; /* of HTTP */
    char *body;      /* NUL-terminated */
    size_t len;
    json_t *json; /* the parsed object; NULL: the answer is text */
};

/* Result of a request: why there is no answer. */
enum ctl_client_failure {
    CTL_CLIENT_OK,
    CTL_CLIENT_UNREACHABLE, /* see ctl_client_errno() */
    CTL_CLIENT_TIMEOUT,
    CTL_CLIENT_CUT,
    CTL_CLIENT_TOO_LARGE,
    CTL_CLIENT_NO_HTTP, /* not HTTP, or not an answer to the request */
    CTL_CLIENT_CANCELLED,
    CTL_CLIENT_OTHER,
};

/*
 * ctl_client_open(out, conf) / ctl_client_close(c):
 * Create a client, without connecting / free it.
 *
 * Owns:   what ${conf} points at must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int ctl_client_open(struct ctl_client **out, const struct ctl_client_conf *conf) NODISCARD;
void ctl_client_close(struct ctl_client *c);

/*
 * ctl_client_ask(c, request, out):
 * Send a request and read the answer, whatever its status is.
 *
 * Owns:   CTL_CLIENT_OK: the caller passes ${out} to ctl_client_drop()
 */
enum ctl_client_failure ctl_client_ask(struct ctl_client *c, const struct ctl_request *request,
                                       struct ctl_answer *out) NODISCARD;
void ctl_client_drop(struct ctl_answer *answer);

/*
 * ctl_client_knows(c, path):
 * Does the daemon know ${path}, for any method? True if the request fails.
 */
bool ctl_client_knows(struct ctl_client *c, const char *path);

/*
 * ctl_client_errno(c) / ctl_client_detail(c):
 * errno of a failed connect, 0 after other failures / libcurl's text for the last failure.
 */
int ctl_client_errno(const struct ctl_client *c);
const char *ctl_client_detail(const struct ctl_client *c);

/* ctl_client_version(): name and version of libcurl. */
const char *ctl_client_version(void);

#endif
