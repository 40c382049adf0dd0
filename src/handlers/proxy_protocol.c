#include "handlers/proxy_protocol.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "net/channel.h"
#include "net/memory_account.h"

#define PROXY_PROTOCOL_LOG_INTERVAL_NS (1 * NS_PER_S)

static struct proxy_protocol *proxy_protocol_of(struct handler *h)
{
    return CONTAINER_OF(h, struct proxy_protocol, handler);
}

static bool proxy_protocol_optional(const struct proxy_protocol *pp)
{
    return pp->gate->conf->mode == PROXY_PROTOCOL_OPTIONAL;
}

static const char *proxy_protocol_error_text(int error)
{
    switch (error) {
    case -EACCES: return "not a trusted proxy";
    case -ENOMSG: return "sent no PROXY header";
    case -EPROTO: return "sent a broken PROXY header";
    case -EMSGSIZE: return "sent a PROXY header that is too long";
    case -ETIMEDOUT: return "sent no complete PROXY header in time";
    case -ENOMEM: return "out of memory";
    default: return strerror(-error);
    }
}

void proxy_protocol_log_refusal(struct proxy_protocol_gate *gate, const struct address *peer,
                                int error)
{
    char text[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&gate->log_limit, PROXY_PROTOCOL_LOG_INTERVAL_NS, &suppressed))
        log_warning("listen %s: peer %s: %s; reset%s", gate->listener,
                    address_format(text, sizeof(text), peer), proxy_protocol_error_text(error),
                    LOG_SUPPRESSED(suppressed));
}

enum proxy_protocol_verdict proxy_protocol_expect(struct proxy_protocol_gate *gate,
                                                  const struct address *peer)
{
    if (!gate || gate->conf->mode == PROXY_PROTOCOL_OFF)
        return PROXY_PROTOCOL_PASS;
    if (cidr_any_has(gate->conf->trusted.list, gate->conf->trusted.n, peer))
        return PROXY_PROTOCOL_READ;
    if (gate->conf->mode == PROXY_PROTOCOL_OPTIONAL)
        return PROXY_PROTOCOL_PASS;
    proxy_protocol_log_refusal(gate, peer, -EACCES);
    return PROXY_PROTOCOL_REFUSE;
}

static struct memory_account *proxy_protocol_buffered(const struct proxy_protocol *pp)
{
    return channel_net(pp->handler.channel)->buffered;
}

static int proxy_protocol_hold(struct proxy_protocol *pp, const uint8_t *data, size_t len)
{
    return memory_account_append(proxy_protocol_buffered(pp), &pp->held, data, len);
}

static size_t proxy_protocol_held(const struct handler *h)
{
    return CONTAINER_OF(h, const struct proxy_protocol, handler)->held.cap;
}

/* Copy the bytes of this read behind the header, unless done() has passed them on. */
static void proxy_protocol_hold_rest(struct proxy_protocol *pp)
{
    struct channel *ch = pp->handler.channel;

    if (pp->rest_bytes > 0 && !channel_ended(ch) &&
        proxy_protocol_hold(pp, pp->rest, pp->rest_bytes) < 0)
        channel_abort(ch, -ENOMEM);
    pp->rest = NULL;
    pp->rest_bytes = 0;
}

static void proxy_protocol_decide(struct proxy_protocol *pp, int error, const uint8_t *rest,
                                  size_t rest_bytes)
{
    pp->is_decided = true;
    pp->rest = rest;
    pp->rest_bytes = rest_bytes;
    channel_stop_reading(pp->handler.channel, CHANNEL_STOP_HANDLER);
    pp->done(pp, error);
    proxy_protocol_hold_rest(pp);
}

/*
 * Is ${n}, the result of proxy_header_decode(), final? For a missing optional header, set it to 0.
 */
static bool proxy_protocol_settles(const struct proxy_protocol *pp, int *n)
{
    if (*n == -EAGAIN)
        return false;
    if (*n == -ENOMSG && proxy_protocol_optional(pp))
        *n = 0;
    return true;
}

/* The header nearly always fits one read: decode in place. */
static void proxy_protocol_read_first(struct proxy_protocol *pp, const uint8_t *data, size_t len)
{
    int n = proxy_header_decode(&pp->header, data, len);

    if (proxy_protocol_settles(pp, &n)) {
        size_t taken = n > 0 ? (size_t)n : 0;

        proxy_protocol_decide(pp, n < 0 ? n : 0, data + taken, len - taken);
    } else if (proxy_protocol_hold(pp, data, len) < 0) {
        proxy_protocol_decide(pp, -ENOMEM, NULL, 0);
    }
}

static void proxy_protocol_read_more(struct proxy_protocol *pp, const uint8_t *data, size_t len)
{
    int n;

    if (proxy_protocol_hold(pp, data, len) < 0) {
        proxy_protocol_decide(pp, -ENOMEM, NULL, 0);
        return;
    }
    n = proxy_header_decode(&pp->header, buffer_front(&pp->held), buffer_bytes(&pp->held));
    if (!proxy_protocol_settles(pp, &n))
        return;
    if (n > 0)
        memory_account_consume(proxy_protocol_buffered(pp), &pp->held, (size_t)n);
    proxy_protocol_decide(pp, n < 0 ? n : 0, NULL, 0);
}

static void proxy_protocol_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct proxy_protocol *pp = proxy_protocol_of(h);

    MUST(!pp->is_decided); /* after the decision reading is paused */
    if (buffer_bytes(&pp->held) == 0)
        proxy_protocol_read_first(pp, data, len);
    else
        proxy_protocol_read_more(pp, data, len);
}

static void proxy_protocol_conclude(struct proxy_protocol *pp, int error)
{
    bool begun = buffer_bytes(&pp->held) > 0 &&
                 proxy_header_begun(buffer_front(&pp->held), buffer_bytes(&pp->held));
    bool passes = proxy_protocol_optional(pp) && !begun;

    proxy_protocol_decide(pp, passes ? 0 : error, NULL, 0);
}

static void proxy_protocol_eof(struct proxy_protocol *pp)
{
    MUST(!pp->is_decided);
    pp->has_ended = true;
    proxy_protocol_conclude(pp, buffer_bytes(&pp->held) > 0 ? -EPROTO : -ENODATA);
}

static void proxy_protocol_active(struct handler *h)
{
    (void)h;
}

static void proxy_protocol_ended(struct handler *h, enum handler_end what, int error)
{
    struct proxy_protocol *pp = proxy_protocol_of(h);

    if (what == HANDLER_EOF) {
        proxy_protocol_eof(pp);
        return;
    }
    if (what == HANDLER_CLOSED)
        memory_account_clear(proxy_protocol_buffered(pp), &pp->held);
    handler_ended(h->next, what, error);
}

static const struct handler_ops proxy_protocol_ops = {.name = "proxy protocol",
                                                      .active = proxy_protocol_active,
                                                      .read = proxy_protocol_read,
                                                      .ended = proxy_protocol_ended,
                                                      .held = proxy_protocol_held};

void proxy_protocol_add(struct proxy_protocol *pp, struct channel *ch,
                        struct proxy_protocol_gate *gate,
                        void (*done)(struct proxy_protocol *pp, int error))
{
    *pp = (struct proxy_protocol){.gate = gate, .done = done, .header.local = true};
    buffer_init(&pp->held);
    pipeline_add(&ch->pipeline, &pp->handler, &proxy_protocol_ops);
}

void proxy_protocol_set_gate(struct proxy_protocol *pp, struct proxy_protocol_gate *gate)
{
    pp->gate = gate;
}

void proxy_protocol_give_up(struct proxy_protocol *pp)
{
    if (!pp->is_decided && !channel_discards(pp->handler.channel))
        proxy_protocol_conclude(pp, -ETIMEDOUT);
}

size_t proxy_protocol_rest_bytes(const struct proxy_protocol *pp)
{
    return buffer_bytes(&pp->held) + pp->rest_bytes;
}

static void proxy_protocol_pass(struct proxy_protocol *pp, const uint8_t *data, size_t len)
{
    if (!channel_discards(pp->handler.channel))
        handler_read(pp->handler.next, data, len);
}

/* Resume reading before passing bytes on: their receiver may pause it again. */
void proxy_protocol_release(struct proxy_protocol *pp)
{
    struct handler *h = &pp->handler;
    struct channel *ch = h->channel;

    MUST(pp->is_decided && h->ops == &proxy_protocol_ops);
    pipeline_remove(&ch->pipeline, h);
    channel_resume_reading(ch, CHANNEL_STOP_HANDLER);
    handler_active(h->next);
    if (buffer_bytes(&pp->held) > 0)
        proxy_protocol_pass(pp, buffer_front(&pp->held), buffer_bytes(&pp->held));
    memory_account_clear(proxy_protocol_buffered(pp), &pp->held);
    if (pp->rest_bytes > 0)
        proxy_protocol_pass(pp, pp->rest, pp->rest_bytes);
    pp->rest_bytes = 0;
    if (pp->has_ended && !channel_discards(ch))
        handler_ended(h->next, HANDLER_EOF, 0);
}
