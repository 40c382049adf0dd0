/*
 * check/check_http: request and answer of an HTTP check.
 *
 * The status line is parsed (RFC 9112, section 4), byte by byte: `HTTP/1.0` or `HTTP/1.1`, a blank
 * and three digits. Interim answers (100 and 102 to 199) are skipped unless they are wanted.
 */
#ifndef CHECK_CHECK_HTTP_H
#define CHECK_CHECK_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

struct arena;

#define CHECK_HTTP_RANGES  16
#define CHECK_HTTP_HEADERS 16

/* Longest request without its host. */
#define CHECK_HTTP_REQUEST_BYTES 4096

struct check_http_range {
    unsigned from, to;
};

struct check_http_statuses {
    struct check_http_range list[CHECK_HTTP_RANGES];
    unsigned n;
};

struct check_http_header {
    const char *name, *value;
};

struct check_http_conf {
    const char *method; /* NULL: no HTTP */
    const char *target;
    unsigned minor;   /* HTTP/1.${minor} */
    const char *host; /* NULL: of the server's address */
    struct check_http_header headers[CHECK_HTTP_HEADERS];
    unsigned n_headers;
    struct check_http_statuses statuses;
};

/* The host goes between head and tail, unless conf->host is set. */
struct check_http_request {
    const char *head, *tail;
};

struct check_http_state {
    unsigned at; /* bytes of the status line read, or a place in the headers */
    unsigned code;
};

enum check_http_result {
    CHECK_HTTP_MORE,
    CHECK_HTTP_STATUS,
    CHECK_HTTP_OTHER_STATUS, /* state.code, which is not wanted */
    CHECK_HTTP_OTHER         /* no status line */
};

/*
 * check_http_write(out, a, conf):
 * Write the request of ${conf}.
 *
 * Owns:   ${out} lives as long as ${a}
 * Errors: 0; -ENOMEM; -EMSGSIZE (over CHECK_HTTP_REQUEST_BYTES)
 */
int check_http_write(struct check_http_request *out, struct arena *a,
                     const struct check_http_conf *conf) NODISCARD;

/* check_http_request_bytes(conf): length of the request without its host. */
size_t check_http_request_bytes(const struct check_http_conf *conf);

/* check_http_wants(conf, code): is ${code} one of conf->statuses? */
bool check_http_wants(const struct check_http_conf *conf, unsigned code);

/* check_http_next(s, conf, byte): read ${byte} of an answer, from its status line on. */
enum check_http_result check_http_next(struct check_http_state *s,
                                       const struct check_http_conf *conf, unsigned char byte);

/* check_http_has_code(s): has the code of a status line been read? */
bool check_http_has_code(const struct check_http_state *s);

/*
 * check_http_in_headers(at_line_start) / check_http_next_header(s, byte):
 * Return the state behind a status line / read ${byte} there; do the headers end with it?
 */
struct check_http_state check_http_in_headers(bool at_line_start);
bool check_http_next_header(struct check_http_state *s, unsigned char byte);

#endif
