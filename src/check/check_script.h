/*
 * check/check_script: what a health check does: connect, TLS, send, expect.
 *
 *   options --check_script_init--> steps: CONNECT, then SEND, EXPECT and CONNECT in any order
 *
 * `check = tcp`, `tls`, `http` and `steps` are such scripts. An answer is read as a stream: an
 * EXPECT begins behind the match of the one before, nothing is kept, and each byte costs the same.
 * A REFUSE holds until the EXPECT behind it matches.
 */
#ifndef CHECK_CHECK_SCRIPT_H
#define CHECK_CHECK_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "balance/server_tls.h"
#include "base/must.h"
#include "check/check_http.h"
#include "check/check_pattern.h"
#include "net/connector.h"
#include "net/proxy_header.h"

#define CHECK_BYTES_MAX 512

#define CHECK_STEPS_MAX 64

/* REFUSE steps in a row, and the EXPECT behind them. */
#define CHECK_MATCHES_MAX 8

/* Longest text of a step in a reason, with its NUL. */
#define CHECK_STEP_TEXT_BYTES 56

struct check_bytes {
    const uint8_t *data;
    size_t len; /* 0: none */
};

enum check_step_kind {
    CHECK_STEP_CONNECT,
    CHECK_STEP_SEND,
    CHECK_STEP_SEND_HOST, /* sends the host of the server's address, with its port */
    CHECK_STEP_EXPECT,    /* bytes, or a pattern; this and the kinds below read an answer */
    CHECK_STEP_REFUSE,
    CHECK_STEP_STATUS,  /* the status line of HTTP */
    CHECK_STEP_HEADERS, /* the end of the headers of HTTP */
    CHECK_STEP_LINE     /* the line of an agent, for check.line */
};

struct check_step_conf {
    enum check_step_kind kind;
    unsigned number; /* N of check_step.N; 0: made from other options */
    struct check_bytes bytes;
    const char *pattern; /* of EXPECT and REFUSE; NULL: bytes */
    const char *text;    /* for reasons, below CHECK_STEP_TEXT_BYTES */
    unsigned port;       /* of CONNECT; 0: as in the address */
    bool tls;            /* of CONNECT */
};

struct check_conf {
    /* PROXY header; sent only with TLS, or with bytes to send or expect */
    struct proxy_header_conf send_proxy;
    struct upstream_tls_conf tls;
    struct tls_handshakes *handshakes;
    struct check_bytes send;
    struct check_bytes expect; /* with http: in the body */
    struct check_http_conf http;
    bool wants_line; /* instead of `expect`: the answer is a line, see check.line */
    const struct check_step_conf *steps;
    unsigned n_steps;              /* 0: steps are made from the options above */
    int64_t timeout_ns;            /* for all steps together */
    struct connector_conf connect; /* as for sessions */
};

struct check_step {
    struct check_step_conf conf;
    /*
     * note: back. When bytes[0..m] have matched and the next byte does not, back[m] bytes still
     * match. So matches continue across reads without buffering.
     */
    uint16_t *back;
    struct check_pattern *pattern;
};

struct check_script {
    struct check_conf conf;
    struct arena *memory;
    struct check_step *steps; /* the first is a CONNECT */
    unsigned n;
};

/* State of one EXPECT, REFUSE, STATUS or HEADERS. */
struct check_match {
    unsigned matched; /* length of the current match */
    struct check_pattern_set set;
    struct check_http_state http;
};

enum check_match_result { CHECK_MATCH_MORE, CHECK_MATCH_FOUND, CHECK_MATCH_WRONG };

/*
 * check_script_init(s, conf) / check_script_end(s):
 * Prepare ${s} for checks by ${conf} / free what it holds.
 *
 * Owns:   what ${conf} points at must outlive ${s}
 * Errors: 0; -ENOMEM; -EMSGSIZE (over CHECK_BYTES_MAX or CHECK_STEPS_MAX); -EINVAL (no timeout, a
 *         pattern with an error)
 * Source: Knuth, Morris, Pratt, "Fast Pattern Matching in Strings" (1977)
 */
int check_script_init(struct check_script *s, const struct check_conf *conf) NODISCARD;
void check_script_end(struct check_script *s);

/*
 * check_script_is_bare(s, at):
 * Is nothing exchanged on the connection of the CONNECT ${at}, not even TLS?
 */
bool check_script_is_bare(const struct check_script *s, unsigned at);

/* check_match_begin(m, step, at_line_start): begin with the next byte of the answer. */
void check_match_begin(struct check_match *m, const struct check_step *step, bool at_line_start);

/* check_match_next(m, step, http, byte): read ${byte} of an answer. */
enum check_match_result check_match_next(struct check_match *m, const struct check_step *step,
                                         const struct check_http_conf *http, uint8_t byte);

/* check_match_is_begun(m, step): does the answer match so far, so that more bytes may complete it?
 */
bool check_match_is_begun(const struct check_match *m, const struct check_step *step);

#endif
