/*
 * upstream/check: one look at whether a server serves: connect, and perhaps send some bytes and
 * wait for others.
 *
 *   IDLE --check_start--> CONNECTING --> EXCHANGING --> ENDING --> done(), IDLE
 *                              \-- nothing to send or expect, or it failed --^
 *
 * The answer is right as soon as the expected bytes came anywhere in it, as with HAProxy's
 * `tcp-check expect string`: what is worth looking for (role:master) is often not what an answer
 * begins with. Nothing is kept of an answer but its first bytes, for the log, and how far the
 * expected ones have been matched.
 *
 * How it ends. A check must leave nothing behind, on either side, however often it is made:
 *   - Without anything to send or expect the handshake is never completed: its last acknowledgement
 *     is held back and a reset sent in its place, so that the server's accept(2) never sees the
 *     client. HAProxy does the same.
 *   - Else end of file is sent, and the kernel forgets the connection. The server reads a clean
 *     end, where HAProxy's reset would have it log an error, and no TIME_WAIT stays with us for a
 *     minute, as it would after a close (unless both ends of file cross on their way).
 */
#ifndef UPSTREAM_CHECK_H
#define UPSTREAM_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/timer_heap.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/connector.h"
#include "net/netloop.h"
#include "net/proxy_header.h"

/* The most bytes to send, and to expect. */
#define CHECK_BYTES_MAX 512

/* An answer in which the expected bytes have not come by now is wrong. */
#define CHECK_ANSWER_MAX_BYTES (64 * 1024)

/* So much of an answer is kept, to be shown. */
#define CHECK_SHOWN_BYTES 32

/* Room for the longest text check_describe() writes, its NUL included. */
#define CHECK_TEXT_BYTES 256

enum check_outcome {
    CHECK_PASSED,
    CHECK_REFUSED,
    CHECK_UNREACHABLE, /* check_result.error says why */
    CHECK_CONNECT_TIMEOUT,
    CHECK_RESET,
    CHECK_CLOSED, /* before there was any answer */
    CHECK_WRONG_ANSWER,
    CHECK_ANSWER_TIMEOUT,
    CHECK_NO_PORT,      /* no local port or address is left to connect from */
    CHECK_NO_RESOURCES, /* this process has no descriptors or memory left */
    CHECK_CANCELLED,
    CHECK_OUTCOMES
};

/* What an outcome says about the server. */
enum check_verdict {
    CHECK_FOR,
    CHECK_AGAINST,
    CHECK_NEITHER /* it is we who failed */
};

struct check_bytes {
    const uint8_t *data;
    size_t len; /* 0: none */
};

struct check_conf {
    struct proxy_header_conf greeting; /* goes before all else, unless the port alone is checked */
    struct check_bytes send;
    struct check_bytes expect;
    int64_t timeout_ns;            /* for all of it, with all addresses */
    struct connector_conf connect; /* as sessions connect to the server, from the same source */
};

/* A check_conf made ready, for any number of checks at a time. */
struct check_script {
    struct check_conf conf;
    /*
     * note: back. When the first m + 1 expected bytes have matched and the next does not, back[m]
     * is how many of the first have matched nevertheless (Knuth, Morris, Pratt): an answer is
     * looked at byte by byte, however it is cut into reads, and none of it is kept.
     */
    uint16_t back[CHECK_BYTES_MAX];
};

struct check_result {
    enum check_outcome outcome;
    int error; /* 0 or -errno */
    int64_t duration_ns;
    size_t answer_bytes;
    uint8_t shown[CHECK_SHOWN_BYTES]; /* the first of them */
};

struct check;

/*
 * The outcome, in ${c}->result: once for each check_start(), on the loop, and never inside
 * check_start() or check_cancel(). The descriptor is closed, and ${c} may be started again from
 * here.
 */
typedef void check_done(struct check *c);

enum check_state { CHECK_IDLE, CHECK_CONNECTING, CHECK_EXCHANGING, CHECK_ENDING };

struct check {
    struct connector connector;
    struct channel channel;
    struct handler tail;
    struct timer
        timer; /* while EXCHANGING: the end of the time, or the next look whether all is sent */
    struct task end; /* of a check that was cancelled while CONNECTING */
    struct netloop *net;
    check_done *done;
    const struct check_script *script;
    enum check_state state;
    int64_t began_at_ns;
    unsigned matched; /* so many of the expected bytes are the last that came */
    struct check_result result;
};

/*
 * check_script_init(s, conf):
 * Make ${conf} ready.
 *
 * Thread: any
 * Owns:   the bytes of ${conf} are borrowed and must outlive ${s}
 * Errors: 0; -EMSGSIZE (over CHECK_BYTES_MAX); -EINVAL (no time)
 * Source: D. Knuth, J. Morris, V. Pratt, "Fast Pattern Matching in Strings" (1977)
 */
int check_script_init(struct check_script *s, const struct check_conf *conf) NODISCARD;

/*
 * check_init(c, net, done):
 * Prepare ${c}, idle.
 *
 * Thread: loop of ${net}, or before it is started
 */
void check_init(struct check *c, struct netloop *net, check_done *done);

/*
 * check_start(c, script, addresses, n):
 * Check the server at these ${n} > 0 addresses: the first that answers is asked.
 *
 * Thread: loop of ${c}
 * Owns:   ${script} and ${addresses} are borrowed until the outcome, or until check_cancel()
 * Errors: none; every outcome goes to done()
 */
void check_start(struct check *c, const struct check_script *script,
                 const struct address *addresses, unsigned n);

/*
 * check_cancel(c):
 * Give up: the outcome CHECK_CANCELLED comes at the end of this turn. Nothing happens if ${c} is
 * idle.
 *
 * Thread: loop of ${c}
 */
void check_cancel(struct check *c);

/*
 * check_verdict(outcome):
 * What it says about the server.
 *
 * Thread: any
 */
enum check_verdict check_verdict(enum check_outcome outcome);

/*
 * check_outcome_text(outcome) / check_describe(text, size, result):
 * The outcome in words; the same with what is known of its cause, such as the first bytes of a
 * wrong answer: as they came, which the log makes visible, but NUL as a dot. Returns ${text}.
 *
 * Thread: any
 * Units:  ${size} bytes, at least CHECK_TEXT_BYTES
 */
const char *check_outcome_text(enum check_outcome outcome);
const char *check_describe(char *text, size_t size, const struct check_result *result);

#endif
