/* check/check_exchange: the steps of a check on its connection. See check/check.h. */
#include "check/check_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "balance/upstream_server.h"
#include "base/clock.h"

#define CHECK_SENT_AGAIN_NS (10 * NS_PER_MS)

#define CHECK_HOST_BYTES (ADDRESS_HOST_BYTES + sizeof(":65535"))

/* Most bytes of one write: a PROXY header, a request and its host. */
#define CHECK_WRITE_BYTES (PROXY_HEADER_ENCODED_BYTES + CHECK_HTTP_REQUEST_BYTES + CHECK_HOST_BYTES)

static const struct check_step *check_exchange_step(const struct check *c)
{
    return &c->script->steps[c->at];
}

/* ---- waiting ---- */

static bool check_exchange_awaits(const struct check *c)
{
    return c->n_matches > 0;
}

static bool check_exchange_is_sent(const struct check *c)
{
    return !check_exchange_awaits(c) && channel_pending_bytes(&c->channel) == 0;
}

static bool check_exchange_is_unconfirmed(const struct check *c)
{
    return c->is_tls && !c->handshakes && !c->tls.handler.is_confirmed;
}

static void check_exchange_wait_answer(struct check *c)
{
    loop_cancel(c->net->loop, &c->timer);
    loop_schedule(c->net->loop, &c->timer, check_due_ns(c) - clock_now_ns());
}

static int64_t check_exchange_confirm_due_ns(const struct check *c)
{
    int64_t confirm_ns = loop_due_ns(c->net->loop, c->confirm_from_ns, c->confirm_ns);
    int64_t due_ns = check_due_ns(c);

    return confirm_ns < due_ns ? confirm_ns : due_ns;
}

/* All steps of the connection are done, and all is sent. */
static void check_exchange_end(struct check *c)
{
    if (c->at < c->script->n)
        check_reconnect(c);
    else
        check_decide(c, CHECK_PASSED);
}

/*
 * If no answer is expected, the exchange is over when the kernel has accepted all bytes, and the
 * server the handshake.
 */
static void check_exchange_look_sent(struct check *c)
{
    int64_t now_ns = clock_now_ns(), left_ns = check_due_ns(c) - now_ns;

    if (channel_ended(&c->channel))
        return; /* CHANNEL_CLOSED follows */
    loop_cancel(c->net->loop, &c->timer);
    if (!check_exchange_is_sent(c))
        loop_schedule(c->net->loop, &c->timer,
                      left_ns < CHECK_SENT_AGAIN_NS ? left_ns : CHECK_SENT_AGAIN_NS);
    else if (check_exchange_is_unconfirmed(c) &&
             check_exchange_confirm_due_ns(c) > loop_heard_ns(c->net->loop))
        loop_schedule(c->net->loop, &c->timer, check_exchange_confirm_due_ns(c) - now_ns);
    else
        check_exchange_end(c);
}

/* Outcome of a timeout: an answer that matches so far is late, not wrong. */
static enum check_outcome check_exchange_too_late(const struct check *c)
{
    unsigned last = c->n_matches - 1;

    if (!check_exchange_awaits(c) || c->result.answer_bytes == 0 ||
        check_match_is_begun(&c->matches[last], &c->script->steps[c->at + last]))
        return CHECK_ANSWER_TIMEOUT;
    return CHECK_WRONG_ANSWER;
}

void check_exchange_timer(struct check *c)
{
    if (check_due_ns(c) <= loop_heard_ns(c->net->loop) && !check_exchange_is_sent(c))
        check_decide(c, check_exchange_too_late(c));
    else if (check_exchange_awaits(c))
        check_exchange_wait_answer(c);
    else
        check_exchange_look_sent(c);
}

/* ---- sending ---- */

/* Host of the server for HTTP: the name for TLS, or the host and port of its address. */
static size_t check_exchange_host(const struct check *c, char *out, size_t size)
{
    const char *text = c->server && c->server->conf ? c->server->conf->address_text : "";
    const char *name;

    if (c->script->conf.tls.server_name)
        return (size_t)snprintf(out, size, "%s", c->script->conf.tls.server_name);
    if (text[0] == '\0' || strchr("/@", text[0]))
        return (size_t)snprintf(out, size, "localhost");
    if (text[0] == '_') {
        name = server_tls_name(out, &c->script->conf.tls, text);
        return name ? strlen(name) : 0;
    }
    return (size_t)snprintf(out, size, "%s", text);
}

/* Send in one write what is sent in a row, so that the server gets it at once. */
static void check_exchange_send(struct check *c)
{
    const struct check_script *s = c->script;
    bool is_first = !c->is_tls && s->steps[c->at - 1].conf.kind == CHECK_STEP_CONNECT;
    uint8_t bytes[CHECK_WRITE_BYTES];
    size_t len = is_first ? check_encode_header(c, bytes) : 0;

    for (; c->at < s->n; c->at++) {
        const struct check_step_conf *step = &s->steps[c->at].conf;

        if (step->kind == CHECK_STEP_SEND_HOST && len + CHECK_HOST_BYTES <= CHECK_WRITE_BYTES) {
            len += check_exchange_host(c, (char *)bytes + len, CHECK_HOST_BYTES);
        } else if (step->kind == CHECK_STEP_SEND && len + step->bytes.len <= CHECK_WRITE_BYTES) {
            memcpy(bytes + len, step->bytes.data, step->bytes.len);
            len += step->bytes.len;
        } else {
            break;
        }
    }
    c->at_line_start = true;
    check_write(c, bytes, len);
}

/* ---- expecting ---- */

static bool check_exchange_is_end(const struct check *c)
{
    return c->at == c->script->n || check_exchange_step(c)->conf.kind == CHECK_STEP_CONNECT;
}

static bool check_exchange_is_send(const struct check *c)
{
    enum check_step_kind kind = check_exchange_step(c)->conf.kind;

    return kind == CHECK_STEP_SEND || kind == CHECK_STEP_SEND_HOST;
}

/* Begin to search the answer for the next EXPECT, and the REFUSEs before it. */
static void check_exchange_expect(struct check *c)
{
    const struct check_step *steps = check_exchange_step(c);
    unsigned n = 0;

    c->result.answer_bytes = 0;
    c->line.n = 0;
    do {
        MUST(n < CHECK_MATCHES_MAX && c->at + n < c->script->n);
        check_match_begin(&c->matches[n], &steps[n], c->at_line_start);
    } while (steps[n++].conf.kind == CHECK_STEP_REFUSE);
    c->n_matches = n;
    if (c->has_ended)
        check_decide(c, CHECK_CLOSED);
    else
        check_exchange_wait_answer(c);
}

/* Do steps until one must wait. */
static void check_exchange_run(struct check *c)
{
    c->n_matches = 0;
    while (c->state == CHECK_EXCHANGING && !check_exchange_is_end(c) && check_exchange_is_send(c))
        check_exchange_send(c);
    if (c->state != CHECK_EXCHANGING)
        return;
    if (check_exchange_is_end(c))
        check_exchange_look_sent(c);
    else
        check_exchange_expect(c);
}

void check_exchange(struct check *c)
{
    c->at++;
    c->at_line_start = true;
    c->has_ended = false;
    check_exchange_send(c); /* at least the PROXY header */
    check_exchange_run(c);
}

static void check_exchange_note(struct check *c, uint8_t byte)
{
    struct check_result *r = &c->result;

    if (r->answer_bytes < CHECK_SHOWN_BYTES)
        r->shown[r->answer_bytes] = byte;
    r->answer_bytes++;
    c->at_line_start = byte == '\n';
}

/* Blame step ${i} of those that search the answer. */
static void check_exchange_refuse(struct check *c, unsigned i)
{
    const struct check_step_conf *step = &c->script->steps[c->at + i].conf;
    char *why = c->result.why;

    if (step->kind == CHECK_STEP_REFUSE)
        snprintf(why, sizeof(c->result.why), "unwanted text in the answer");
    else if (check_http_has_code(&c->matches[i].http))
        snprintf(why, sizeof(c->result.why), "HTTP status %u", c->matches[i].http.code);
    else
        snprintf(why, sizeof(c->result.why), "no answer of HTTP/1");
    c->at += i;
    c->n_matches = 1; /* this one */
    check_decide(c, CHECK_WRONG_ANSWER);
}

/* Read ${byte} of the line of an agent; true if the line has ended. */
static bool check_exchange_next_of_line(struct check *c, uint8_t byte)
{
    switch (agent_line_add(&c->line, &byte, 1)) {
    case AGENT_LINE_PART: return false;
    case AGENT_LINE_WHOLE:
        c->at++;
        check_exchange_run(c);
        return true;
    case AGENT_LINE_LONG: check_decide(c, CHECK_LONG_LINE); return true;
    case AGENT_LINE_BINARY: break;
    }
    check_decide(c, CHECK_NO_LINE);
    return true;
}

/* Search ${byte}; true if the steps go on behind it, or the check is decided. */
static bool check_exchange_next(struct check *c, uint8_t byte)
{
    const struct check_step *steps = check_exchange_step(c);
    unsigned last = c->n_matches - 1;

    if (steps->conf.kind == CHECK_STEP_LINE)
        return check_exchange_next_of_line(c, byte);
    for (unsigned i = 0; i <= last; i++) {
        enum check_match_result result =
            check_match_next(&c->matches[i], &steps[i], &c->script->conf.http, byte);

        if (result == CHECK_MATCH_MORE)
            continue;
        if (result == CHECK_MATCH_FOUND && i == last) {
            c->at += c->n_matches;
            check_exchange_run(c);
        } else {
            check_exchange_refuse(c, i);
        }
        return true;
    }
    return false;
}

/* Note for the reason what came together with an answer that is wrong. */
static void check_exchange_note_rest(struct check *c, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len && c->result.answer_bytes <= CHECK_SHOWN_BYTES; i++)
        check_exchange_note(c, data[i]);
}

void check_exchange_read(struct check *c, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len && c->state == CHECK_EXCHANGING && check_exchange_awaits(c); i++) {
        check_exchange_note(c, data[i]);
        if (check_exchange_next(c, data[i])) {
            if (c->state == CHECK_ENDING)
                check_exchange_note_rest(c, data + i + 1, len - i - 1);
        } else if (c->result.answer_bytes >= CHECK_ANSWER_MAX_BYTES) {
            check_decide(c, CHECK_WRONG_ANSWER);
        }
    }
}

void check_exchange_eof(struct check *c)
{
    if (c->state != CHECK_EXCHANGING)
        return; /* decided: check_tls_failed() */
    if (check_exchange_is_unconfirmed(c)) {
        strcpy(c->result.why, "TLS failed: the server closed the connection after the handshake");
        check_decide(c, CHECK_TLS_FAILED);
        return;
    }
    c->has_ended = true;
    /* The end of the answer ends its last line, for patterns. */
    if (check_exchange_awaits(c) && c->result.answer_bytes > 0 && !c->at_line_start &&
        check_exchange_step(c)[c->n_matches - 1].pattern && check_exchange_next(c, '\n'))
        return;
    if (check_exchange_awaits(c) && c->result.answer_bytes > 0)
        check_decide(c, check_exchange_step(c)->conf.kind == CHECK_STEP_LINE ? CHECK_NO_LINE
                                                                             : CHECK_WRONG_ANSWER);
    else
        check_decide(c, CHECK_CLOSED);
}

/* Is an answer expected, now or later, on this connection? */
static bool check_exchange_will_expect(const struct check *c)
{
    const struct check_script *s = c->script;

    for (unsigned i = c->at; i < s->n && s->steps[i].conf.kind != CHECK_STEP_CONNECT; i++)
        if (s->steps[i].conf.kind >= CHECK_STEP_EXPECT)
            return true;
    return false;
}

/* Writing failed. If an answer is expected, keep reading until end of file, which decides. */
void check_exchange_broken(struct check *c, int error)
{
    if (!check_exchange_will_expect(c))
        check_decide(c, error == -EPIPE ? CHECK_CLOSED : CHECK_RESET);
}

void check_exchange_confirmed(struct check *c)
{
    if (check_exchange_awaits(c) || c->timer.state == TIMER_IDLE)
        return; /* TIMER_IDLE: check_exchange() follows */
    check_exchange_look_sent(c);
}
