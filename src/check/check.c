#include "check/check_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/sock.h"

/* Shortest time in which a server of TLS 1.3 may refuse the handshake; else as long as it took. */
#define CHECK_CONFIRM_NS (100 * NS_PER_MS)

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

/* Name the step that failed, if it is one of the file. */
static void check_blame(struct check *c)
{
    const struct check_step_conf *step;

    if (c->result.outcome == CHECK_PASSED || c->at == c->script->n)
        return;
    step = &c->script->steps[c->at + (c->n_matches > 0 ? c->n_matches - 1 : 0)].conf;
    c->result.step = step->number;
    if (step->number > 0)
        snprintf(c->result.step_text, sizeof(c->result.step_text), "%s", step->text);
}

/* Report the result. The descriptor is closed already. */
static void check_finish(struct check *c)
{
    check_blame(c);
    c->result.duration_ns = clock_now_ns() - c->began_at_ns;
    c->state = CHECK_IDLE;
    c->done(c);
}

/* End TLS: after a handshake the server expects close_notify. */
static void check_end_tls(struct check *c)
{
    if (c->handshakes)
        server_tls_cancel(&c->tls);
    else if (c->is_tls)
        channel_shutdown_write(&c->channel);
    c->handshakes = false;
}

static void check_end_connection(struct check *c, enum check_state state)
{
    c->state = state;
    loop_cancel(c->net->loop, &c->timer);
    check_end_tls(c);
    channel_end(&c->channel, CHANNEL_END_NOW);
}

/* See "How a connection ends" in check.h. check_on_closed() reports the result. */
void check_decide(struct check *c, enum check_outcome outcome)
{
    if (c->state != CHECK_EXCHANGING)
        return;
    c->result.outcome = outcome;
    check_end_connection(c, CHECK_ENDING);
}

void check_reconnect(struct check *c)
{
    check_end_connection(c, CHECK_RECONNECTING);
}

static void check_on_active(struct handler *h)
{
    (void)h;
}

static void check_on_read(struct handler *h, const uint8_t *data, size_t len)
{
    check_exchange_read(CONTAINER_OF(h, struct check, tail), data, len);
}

static void check_on_writable(struct handler *h)
{
    (void)h; /* never called: a check writes too little to fill the channel */
}

static void check_connect(struct check *c);

static void check_on_closed(struct check *c, int error)
{
    if (c->state == CHECK_EXCHANGING) {
        loop_cancel(c->net->loop, &c->timer);
        if (c->handshakes)
            server_tls_cancel(&c->tls);
        c->result.outcome = check_outcome_of(error, CHECK_ANSWER_TIMEOUT);
        c->result.error = error;
    }
    if (c->state == CHECK_RECONNECTING)
        check_connect(c);
    else
        check_finish(c);
}

static void check_on_end(struct handler *h, enum handler_end what, int error)
{
    struct check *c = CONTAINER_OF(h, struct check, tail);

    switch (what) {
    case HANDLER_EOF:
    case HANDLER_REJECTED: check_exchange_eof(c); break;
    case HANDLER_BROKEN: check_exchange_broken(c, error); break;
    case HANDLER_CLOSED: check_on_closed(c, error); break;
    }
}

static const struct handler_ops check_tail_ops = {.name = "check",
                                                  .active = check_on_active,
                                                  .read = check_on_read,
                                                  .ended = check_on_end,
                                                  .writable = check_on_writable};

int64_t check_due_ns(const struct check *c)
{
    return loop_due_ns(c->net->loop, c->began_at_ns, c->script->conf.timeout_ns);
}

static void check_run_timer(struct task *t)
{
    check_exchange_timer(TIMER_OWNER(t, struct check, timer));
}

/* No drop(): the owner cancels the check. */
static const struct task_type check_timer_type = {.name = "check timer", .run = check_run_timer};

size_t check_encode_header(const struct check *c, uint8_t *out)
{
    const struct proxy_header_conf *conf =
        c->send_proxy ? c->send_proxy : &c->script->conf.send_proxy;

    if (conf->version == PROXY_HEADER_NONE)
        return 0;
    return proxy_header_encode(out, conf, &(struct proxy_header_client){.source = NULL});
}

void check_write(struct check *c, const uint8_t *data, size_t len)
{
    int rc = len > 0 ? channel_write(&c->channel, data, len) : 0;

    (void)rc; /* ended() of the tail handler reports a failure */
}

static void check_tls_confirmed(struct server_tls *tls)
{
    check_exchange_confirmed(CONTAINER_OF(tls, struct check, tls));
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
        check_exchange(c); /* before bytes that came with the handshake are read */
        if (c->state == CHECK_EXCHANGING)
            tls_handler_release(&tls->handler);
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
    if (c->is_tls) {
        check_begin_tls(c);
    } else {
        channel_start(&c->channel);
        check_exchange(c);
    }
}

/* Go on behind a CONNECT without an exchange. */
static void check_skip(struct check *c)
{
    c->at++;
    if (c->at < c->script->n)
        check_connect(c);
    else
        check_finish(c);
}

static void check_on_connected(struct connector *connector, int fd, int error)
{
    struct check *c = CONTAINER_OF(connector, struct check, connector);

    if (error < 0) {
        c->result.outcome = check_outcome_of(error, CHECK_CONNECT_TIMEOUT);
        c->result.error = error;
        check_finish(c);
    } else if (check_script_is_bare(c->script, c->at)) {
        sock_close_reset(fd);
        check_skip(c);
    } else {
        check_attach(c, fd);
    }
}

/* The addresses with the port of ${step}. */
static const struct address *check_addresses(struct check *c, const struct check_step_conf *step)
{
    if (step->port == 0)
        return c->addresses;
    for (unsigned i = 0; i < c->n_addresses; i++) {
        c->others[i] = c->addresses[i];
        if (!address_is_unix(&c->others[i]))
            address_set_port(&c->others[i], (uint16_t)step->port);
    }
    return c->others;
}

/* Make the connection of the CONNECT c->at, in the time that is left. */
static void check_connect(struct check *c)
{
    const struct check_conf *conf = &c->script->conf;
    const struct check_step_conf *step = &c->script->steps[c->at].conf;
    int64_t left_ns = c->at == 0 ? conf->timeout_ns : check_due_ns(c) - clock_now_ns();

    c->state = CHECK_CONNECTING;
    c->is_tls = step->tls;
    c->handshakes = false;
    c->n_matches = 0;
    c->result.answer_bytes = 0;
    c->connect = conf->connect;
    c->connect.sock.unseen = check_script_is_bare(c->script, c->at);
    connector_start(&c->connector, check_addresses(c, step), c->n_addresses,
                    left_ns > 0 ? left_ns : 1, &c->connect);
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
    MUST(loop_is_current(c->net->loop) && c->state == CHECK_IDLE);
    MUST(n <= ENDPOINT_ADDRESSES);
    c->script = script;
    c->at = 0;
    c->addresses = addresses;
    c->n_addresses = n;
    c->result = (struct check_result){.outcome = CHECK_PASSED};
    c->began_at_ns = clock_now_ns();
    check_connect(c);
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
    if (c->state == CHECK_RECONNECTING)
        c->state = CHECK_ENDING;
    if (c->state == CHECK_ENDING)
        c->result.outcome = CHECK_CANCELLED;
}
