/*
 * check/check: one health check: runs the steps of a script, one connection after the other.
 *
 *   IDLE --check_start--> CONNECTING --> EXCHANGING --> ENDING --> done(), IDLE
 *                           ^  \  \____________________^ nothing to exchange, or it failed
 *              next CONNECT |   \         |
 *                           RECONNECTING <-/
 *
 * With TLS the exchange begins with the PROXY header and a full handshake (not resumed), which
 * finds an expired certificate. With nothing to expect, the handshake is enough. In TLS 1.3 a
 * server may refuse it behind the handshake, because we have no certificate: so the check waits a
 * moment for its ticket or alert (tls_stream_is_confirmed()).
 *
 * Expected bytes may come anywhere in the answer (HAProxy `tcp-check expect string`).
 *
 * How a connection ends, leaving no trace on either side:
 *   - Nothing to send or expect: a reset replaces the handshake's last ACK (as in HAProxy),
 *     so that accept(2) of the server never returns the connection.
 *   - Otherwise: we send end of file, and the kernel discards the connection. The server reads end
 *     of file, not a reset that it would log. TIME_WAIT remains here only if both sides close at
 *     once.
 */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "balance/endpoint.h"
#include "balance/server_tls.h"
#include "base/must.h"
#include "check/agent.h"
#include "check/check_script.h"
#include "engine/timer_heap.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/connector.h"
#include "net/netloop.h"
#include "tls/tls_counters.h"

/* After so many bytes without a match, an answer is wrong. */
#define CHECK_ANSWER_MAX_BYTES (64 * 1024)

/* Bytes of an answer kept for the log. */
#define CHECK_SHOWN_BYTES 64

#define CHECK_TEXT_BYTES 400

enum check_outcome {
    CHECK_PASSED,
    CHECK_REFUSED,
    CHECK_UNREACHABLE, /* cause: check_result.error */
    CHECK_CONNECT_TIMEOUT,
    CHECK_RESET,
    CHECK_TLS_TIMEOUT,
    CHECK_TLS_FAILED, /* in or after the handshake; cause: check_result.why */
    CHECK_CLOSED,     /* before any answer */
    CHECK_WRONG_ANSWER,
    CHECK_ANSWER_TIMEOUT,
    CHECK_LONG_LINE,    /* with wants_line */
    CHECK_NO_LINE,      /* with wants_line: the end came first, or a control character */
    CHECK_NO_SOURCE,    /* source_address is not an address of this host */
    CHECK_NO_PORT,      /* no local port or address to connect from */
    CHECK_NO_RESOURCES, /* out of descriptors or memory */
    CHECK_CANCELLED,
    CHECK_OUTCOMES
};

enum check_verdict {
    CHECK_FOR,
    CHECK_AGAINST,
    CHECK_NEITHER /* no verdict: cancelled, or the failure is on our side */
};

struct check_result {
    enum check_outcome outcome;
    int error;
    int64_t duration_ns;
    size_t answer_bytes;
    uint8_t shown[CHECK_SHOWN_BYTES]; /* first bytes of the answer */
    char why[SERVER_TLS_WHY_BYTES];   /* empty: the outcome and the answer tell */
    unsigned step;                    /* N of check_step.N that failed; 0: none of them */
    char step_text[CHECK_STEP_TEXT_BYTES];
};

struct check;

/*
 * Called once for each check_start(), on the loop, never inside check_start() or check_cancel().
 * It may start ${c} again.
 */
typedef void check_done(struct check *c);

enum check_state {
    CHECK_IDLE,
    CHECK_CONNECTING,
    CHECK_EXCHANGING,
    CHECK_RECONNECTING, /* the connection ends; that of the next CONNECT follows */
    CHECK_ENDING
};

struct check {
    struct connector connector;
    struct channel channel;
    struct handler tail;
    struct timer timer; /* EXCHANGING: timeout, or poll for unsent bytes */
    struct task end;    /* reports a cancel while CONNECTING */
    struct netloop *net;
    check_done *done;
    const struct check_script *script;
    /* Set by the owner before check_start(): for TLS; PROXY header, NULL: as the script. */
    struct upstream_server *server;
    const struct proxy_header_conf *send_proxy;
    struct server_tls tls;
    struct tls_counters tls_counters; /* sessions have their own */
    bool handshakes;
    enum check_state state;
    int64_t began_at_ns;
    int64_t confirm_from_ns; /* end of the handshake; it is enough when confirmed, or after: */
    int64_t confirm_ns;
    struct agent_line line; /* with wants_line: the answer */
    unsigned at;            /* the step under way; script->n: all are done */
    unsigned n_matches;     /* steps from ${at} on that search the answer now; 0: none */
    bool is_tls;            /* this connection */
    bool has_ended;         /* the server has ended its stream */
    bool at_line_start;     /* of the answer */
    struct check_match matches[CHECK_MATCHES_MAX];
    struct connector_conf connect; /* of this connection */
    const struct address *addresses;
    unsigned n_addresses;
    struct address others[ENDPOINT_ADDRESSES]; /* with the port of a CONNECT */
    struct check_result result;
};

/* check_init(c, net, done): initialize ${c}, idle. Thread: loop of ${net}, or before it starts */
void check_init(struct check *c, struct netloop *net, check_done *done);

/*
 * check_start(c, script, addresses, n):
 * Check the first of ${n} > 0 addresses, at most ENDPOINT_ADDRESSES, that accepts a connection.
 *
 * Thread: loop of ${c}
 * Owns:   ${script} and ${addresses} must live until done()
 */
void check_start(struct check *c, const struct check_script *script,
                 const struct address *addresses, unsigned n);

/*
 * check_cancel(c):
 * End ${c} with CHECK_CANCELLED at the end of this turn, unless it is idle.
 *
 * Thread: loop of ${c}
 */
void check_cancel(struct check *c);

/* check_verdict(outcome): does ${outcome} count for or against the server? */
enum check_verdict check_verdict(enum check_outcome outcome);

/*
 * check_outcome_text(outcome) / check_describe(text, size, result):
 * check_outcome_text: the outcome in words.
 * check_describe: write to ${text} the outcome with its cause, such as a wrong answer's first bytes
 * (NUL as a dot).
 *
 * Units:  ${size} at least CHECK_TEXT_BYTES
 */
const char *check_outcome_text(enum check_outcome outcome);
const char *check_describe(char *text, size_t size, const struct check_result *result);

#endif
