#include "check/check.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "net/sock.h"

#define CHECK_SENT_AGAIN_NS (10 * NS_PER_MS)

/* Shortest time in which a server of TLS 1.3 may refuse the handshake; else as long as it took. */
#define CHECK_CONFIRM_NS (100 * NS_PER_MS)

int check_script_init(struct check_script *s, const struct check_conf *conf)
{
    const struct check_bytes *expect = &conf->expect;
    unsigned m = 0;

    if (conf->send.len > CHECK_BYTES_MAX || expect->len > CHECK_BYTES_MAX)
        return -EMSGSIZE;
    if (conf->timeout_ns <= 0)
        return -EINVAL;
    memset(s, 0, sizeof(*s));
    s->conf = *conf;
    s->conf.connect.sock.unseen =
        !conf->tls.slot && conf->send.len == 0 && expect->len == 0 && !conf->wants_line;
    for (size_t i = 1; i < expect->len; i++) {
        while (m > 0 && expect->data[m] != expect->data[i])
            m = s->back[m - 1];
        if (expect->data[m] == expect->data[i])
            m++;
        s->back[i] = (uint16_t)m;
    }
    return 0;
}

static enum check_outcome check_outcome_of(int error, enum check_outcome timeout)
{
    switch (error) {
    case -ECONNREFUSED: return CHECK_REFUSED;
    case -ETIMEDOUT: return timeout;
    case -EPIPE:
    case -ECONNRESET: return CHECK_RESET;
    case -SOCK_NO_SOURCE: return CHECK_NO_SOURCE;
    case -EADDRNOTAVAIL: return CHECK_NO_PORT;
    default: return sock_error_is_exhaustion(error) ? CHECK_NO_RESOURCES : CHECK_UNREACHABLE;
    }
}

/* Report the result. The descriptor is closed already. */
static void check_finish(struct check *c)
{
    c->result.duration_ns = clock_now_ns() - c->began_at_ns;
    c->state = CHECK_IDLE;
    c->done(c);
}

static bool check_wants_answer(const struct check *c)
{
    return c->script->conf.wants_line || c->script->conf.expect.len > 0;
}

static bool check_has_tls(const struct check *c)
{
    return c->script->conf.tls.slot;
}

/* End TLS: after a handshake the server expects close_notify. */
static void check_end_tls(struct check *c)
{
    if (c->handshakes)
        server_tls_cancel(&c->tls);
    else if (check_has_tls(c))
        channel_shutdown_write(&c->channel);
    c->handshakes = false;
}

/* Close the connection: see "How a check ends" in check.h. check_on_closed() reports the result. */
static void check_decide(struct check *c, enum check_outcome outcome)
{
    if (c->state != CHECK_EXCHANGING)
        return;
    c->state = CHECK_ENDING;
    c->result.outcome = outcome;
    loop_cancel(c->net->loop, &c->timer);
    check_end_tls(c);
    channel_end(&c->channel, CHANNEL_END_NOW);
}

static void check_on_active(struct handler *h)
{
    (void)h;
}

/* See note: back. */
static bool check_match(struct check *c, const uint8_t *data, size_t len)
{
    const struct check_bytes *expect = &c->script->conf.expect;
    unsigned m = c->matched;

    for (size_t i = 0; i < len && m < expect->len; i++) {
        while (m > 0 && expect->data[m] != data[i])
            m = c->script->back[m - 1];
        if (expect->data[m] == data[i])
            m++;
    }
    c->matched = m;
    return m == expect->len;
}

static void check_note_answer(struct check_result *r, const uint8_t *data, size_t len)
{
    if (r->answer_bytes < CHECK_SHOWN_BYTES) {
        size_t space = CHECK_SHOWN_BYTES - r->answer_bytes;

        memcpy(r->shown + r->answer_bytes, data, len < space ? len : space);
    }
    r->answer_bytes += len;
}

static void check_read_line(struct check *c, const uint8_t *data, size_t len)
{
    static const enum check_outcome outcomes[] = {[AGENT_LINE_WHOLE] = CHECK_PASSED,
                                                  [AGENT_LINE_LONG] = CHECK_LONG_LINE,
                                                  [AGENT_LINE_BINARY] = CHECK_NO_LINE};
    enum agent_line_state state = agent_line_add(&c->line, data, len);

    if (state != AGENT_LINE_PART)
        check_decide(c, outcomes[state]);
}

static void check_on_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct check *c = CONTAINER_OF(h, struct check, tail);

    check_note_answer(&c->result, data, len);
    if (c->script->conf.wants_line && c->state == CHECK_EXCHANGING)
        check_read_line(c, data, len);
    if (c->script->conf.expect.len > 0 && check_match(c, data, len))
        check_decide(c, CHECK_PASSED);
    else if (c->script->conf.expect.len > 0 && c->result.answer_bytes >= CHECK_ANSWER_MAX_BYTES)
        check_decide(c, CHECK_WRONG_ANSWER);
}

static bool check_is_unconfirmed(const struct check *c)
{
    return check_has_tls(c) && !c->handshakes && !c->tls.handler.is_confirmed;
}

static void check_on_eof(struct check *c)
{
    bool answered = check_wants_answer(c) && c->result.answer_bytes > 0;

    if (c->state != CHECK_EXCHANGING)
        return; /* decided: check_tls_failed() */
    if (check_is_unconfirmed(c)) {
        strcpy(c->result.why, "TLS failed: the server closed the connection after the handshake");
        check_decide(c, CHECK_TLS_FAILED);
        return;
    }
    check_decide(c, !answered                    ? CHECK_CLOSED
                    : c->script->conf.wants_line ? CHECK_NO_LINE
                                                 : CHECK_WRONG_ANSWER);
}

static void check_on_writable(struct handler *h)
{
    (void)h; /* never called: a check writes too little to fill the channel */
}

/* Writing failed. If an answer is expected, keep reading until end of file, which decides. */
static void check_on_broken(struct check *c, int error)
{
    if (!check_wants_answer(c))
        check_decide(c, error == -EPIPE ? CHECK_CLOSED : CHECK_RESET);
}

static void check_on_closed(struct check *c, int error)
{
    if (c->state == CHECK_EXCHANGING) {
        loop_cancel(c->net->loop, &c->timer);
        if (c->handshakes)
            server_tls_cancel(&c->tls);
        c->result.outcome = check_outcome_of(error, CHECK_ANSWER_TIMEOUT);
        c->result.error = error;
    }
    check_finish(c);
}

static void check_on_end(struct handler *h, enum handler_end what, int error)
{
    struct check *c = CONTAINER_OF(h, struct check, tail);

    switch (what) {
    case HANDLER_EOF:
    case HANDLER_REJECTED: check_on_eof(c); break;
    case HANDLER_BROKEN: check_on_broken(c, error); break;
    case HANDLER_CLOSED: check_on_closed(c, error); break;
    }
}

static const struct handler_ops check_tail_ops = {.name = "check",
                                                  .active = check_on_active,
                                                  .read = check_on_read,
                                                  .ended = check_on_end,
                                                  .writable = check_on_writable};

static int64_t check_due_ns(const struct check *c)
{
    return loop_due_ns(c->net->loop, c->began_at_ns, c->script->conf.timeout_ns);
}

static void check_wait_answer(struct check *c)
{
    loop_schedule(c->net->loop, &c->timer, check_due_ns(c) - clock_now_ns());
}

static int64_t check_confirm_due_ns(const struct check *c)
{
    int64_t confirm_ns = loop_due_ns(c->net->loop, c->confirm_from_ns, c->confirm_ns);
    int64_t due_ns = check_due_ns(c);

    return confirm_ns < due_ns ? confirm_ns : due_ns;
}

static bool check_is_sent(const struct check *c)
{
    return !check_wants_answer(c) && channel_pending_bytes(&c->channel) == 0;
}

/*
 * If no answer is expected, the check passes when the kernel has accepted all bytes, and the server
 * the handshake.
 */
static void check_look_sent(struct check *c)
{
    int64_t now_ns = clock_now_ns(), left_ns = check_due_ns(c) - now_ns;

    if (channel_ended(&c->channel))
        return; /* check_on_closed() follows */
    if (!check_is_sent(c))
        loop_schedule(c->net->loop, &c->timer,
                      left_ns < CHECK_SENT_AGAIN_NS ? left_ns : CHECK_SENT_AGAIN_NS);
    else if (check_is_unconfirmed(c) && check_confirm_due_ns(c) > loop_heard_ns(c->net->loop))
        loop_schedule(c->net->loop, &c->timer, check_confirm_due_ns(c) - now_ns);
    else
        check_decide(c, CHECK_PASSED);
}

/* Outcome of a timeout: an answer that matches so far is late, not wrong. */
static enum check_outcome check_too_late(const struct check *c)
{
    if (!check_wants_answer(c) || c->script->conf.wants_line || c->result.answer_bytes == 0 ||
        c->matched > 0)
        return CHECK_ANSWER_TIMEOUT;
    return CHECK_WRONG_ANSWER;
}

static void check_run_timer(struct task *t)
{
    struct check *c = TIMER_OWNER(t, struct check, timer);

    if (check_due_ns(c) <= loop_heard_ns(c->net->loop) && !check_is_sent(c))
        check_decide(c, check_too_late(c));
    else if (check_wants_answer(c))
        check_wait_answer(c);
    else
        check_look_sent(c);
}

/* No drop(): the owner cancels the check. */
static const struct task_type check_timer_type = {.name = "check timer", .run = check_run_timer};

static size_t check_encode_header(const struct check *c, uint8_t *out)
{
    const struct proxy_header_conf *conf =
        c->send_proxy ? c->send_proxy : &c->script->conf.send_proxy;

    if (conf->version == PROXY_HEADER_NONE)
        return 0;
    return proxy_header_encode(out, conf, &(struct proxy_header_client){.source = NULL});
}

static void check_write(struct check *c, const uint8_t *data, size_t len)
{
    int rc = len > 0 ? channel_write(&c->channel, data, len) : 0;

    (void)rc; /* ended() of the tail handler reports a failure */
}

/* Send PROXY header (LOCAL) and bytes in one write, so that the server gets both at once. */
static void check_send(struct check *c)
{
    const struct check_conf *conf = &c->script->conf;
    uint8_t bytes[PROXY_HEADER_ENCODED_BYTES + CHECK_BYTES_MAX];
    size_t len = check_has_tls(c) ? 0 : check_encode_header(c, bytes);

    if (conf->send.len > 0)
        memcpy(bytes + len, conf->send.data, conf->send.len);
    check_write(c, bytes, len + conf->send.len);
}

static void check_exchange(struct check *c)
{
    check_send(c);
    if (c->state != CHECK_EXCHANGING)
        return;
    if (!check_wants_answer(c))
        check_look_sent(c);
    else
        check_wait_answer(c);
}

static void check_tls_confirmed(struct server_tls *tls)
{
    struct check *c = CONTAINER_OF(tls, struct check, tls);

    if (check_wants_answer(c) || c->timer.state == TIMER_IDLE)
        return; /* TIMER_IDLE: check_exchange() follows */
    loop_cancel(c->net->loop, &c->timer);
    check_look_sent(c);
}

static void check_tls_failed(struct server_tls *tls)
{
    struct check *c = CONTAINER_OF(tls, struct check, tls);

    server_tls_failure(tls, c->result.why, sizeof(c->result.why));
    check_decide(c, CHECK_TLS_FAILED);
}

static void check_tls_done(struct server_tls *tls, int error)
{
    struct check *c = CONTAINER_OF(tls, struct check, tls);

    if (error == 0) {
        c->handshakes = false;
        c->confirm_from_ns = clock_now_ns();
        c->confirm_ns = c->confirm_from_ns - tls->handler.began_at_ns;
        if (c->confirm_ns < CHECK_CONFIRM_NS)
            c->confirm_ns = CHECK_CONFIRM_NS;
        tls_handler_release(&tls->handler);
        check_exchange(c);
        return;
    }
    c->result.error = error;
    server_tls_why(tls, error, c->result.why, sizeof(c->result.why));
    check_decide(c, error == -ETIMEDOUT               ? CHECK_TLS_TIMEOUT
                    : server_tls_error_is_ours(error) ? CHECK_NO_RESOURCES
                                                      : CHECK_TLS_FAILED);
}

static void check_begin_tls(struct check *c)
{
    const struct check_conf *conf = &c->script->conf;
    const struct server_tls_wish wish = {.deadline_ns = check_due_ns(c),
                                         .handshakes = conf->handshakes,
                                         .counters = &c->tls_counters,
                                         .done = check_tls_done,
                                         .confirmed = check_tls_confirmed,
                                         .failed = check_tls_failed};
    uint8_t header[PROXY_HEADER_ENCODED_BYTES];

    check_write(c, header, check_encode_header(c, header));
    c->handshakes = true;
    if (server_tls_begin(&c->tls, &c->channel, &conf->tls, c->server, &wish) == 0) {
        channel_start(&c->channel);
    } else {
        c->result.error = -ENOMEM;
        check_decide(c, CHECK_NO_RESOURCES);
    }
}

static void check_attach(struct check *c, int fd)
{
    c->state = CHECK_EXCHANGING;
    channel_init(&c->channel, c->net, fd);
    pipeline_init(&c->channel.pipeline, &c->channel, &c->tail, &check_tail_ops);
    if (check_has_tls(c)) {
        check_begin_tls(c);
    } else {
        channel_start(&c->channel);
        check_exchange(c);
    }
}

static void check_on_connected(struct connector *connector, int fd, int error)
{
    struct check *c = CONTAINER_OF(connector, struct check, connector);
    const struct check_conf *conf = &c->script->conf;

    if (error == 0 && (check_has_tls(c) || conf->send.len > 0 || check_wants_answer(c))) {
        check_attach(c, fd);
        return;
    }
    if (error == 0) {
        sock_close_reset(fd);
    } else {
        c->result.outcome = check_outcome_of(error, CHECK_CONNECT_TIMEOUT);
        c->result.error = error;
    }
    check_finish(c);
}

static void check_run_end(struct task *t)
{
    check_finish(CONTAINER_OF(t, struct check, end));
}

static const struct task_type check_end_type = {
    .name = "check end", .run = check_run_end, .drop = check_run_end};

void check_init(struct check *c, struct netloop *net, check_done *done)
{
    *c = (struct check){.net = net, .done = done, .state = CHECK_IDLE};
    connector_init(&c->connector, net, check_on_connected);
    timer_init_silence(&c->timer, &check_timer_type);
    c->end.type = &check_end_type;
}

void check_start(struct check *c, const struct check_script *script,
                 const struct address *addresses, unsigned n)
{
    const struct check_conf *conf = &script->conf;

    MUST(loop_is_current(c->net->loop) && c->state == CHECK_IDLE);
    c->script = script;
    c->state = CHECK_CONNECTING;
    c->matched = 0;
    c->line.n = 0;
    c->handshakes = false;
    c->result = (struct check_result){.outcome = CHECK_PASSED};
    c->began_at_ns = clock_now_ns();
    connector_start(&c->connector, addresses, n, conf->timeout_ns, &conf->connect);
}

void check_cancel(struct check *c)
{
    MUST(loop_is_current(c->net->loop));
    if (c->state == CHECK_CONNECTING) {
        connector_cancel(&c->connector);
        c->state = CHECK_ENDING;
        loop_reap(c->net->loop, &c->end);
    }
    check_decide(c, CHECK_CANCELLED);
    if (c->state == CHECK_ENDING)
        c->result.outcome = CHECK_CANCELLED;
}
