#include "handlers/proxy_protocol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define PROXY_PROTOCOL_LOG_INTERVAL_NS (1 * NS_PER_S)

static struct proxy_protocol *proxy_protocol_of(struct preface_handler *p)
{
    return CONTAINER_OF(p, struct proxy_protocol, preface);
}

/* PROXY_PROTOCOL_OFF: a reload turned it off while the session waited for the header. */
static bool proxy_protocol_optional(const struct proxy_protocol *pp)
{
    return pp->gate->conf->mode != PROXY_PROTOCOL_REQUIRED;
}

static const char *proxy_protocol_error_text(int error)
{
    switch (error) {
    case -EACCES: return "not a trusted proxy";
    case -ENOMSG: return "sent no PROXY header";
    case -EPROTO: return "sent a broken PROXY header";
    case -EMSGSIZE: return "sent a PROXY header that is too long";
    case -ETIMEDOUT: return "sent no complete PROXY header in time";
    case -ENOMEM: return "no memory for its PROXY header";
    default: return strerror(-error);
    }
}

void proxy_protocol_log_refusal(struct proxy_protocol_gate *gate, const struct address *peer,
                                int error)
{
    char text[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&gate->log_limit, PROXY_PROTOCOL_LOG_INTERVAL_NS, &suppressed))
        log_warning("listen %s: peer %s: %s; the client is reset%s", gate->listener,
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

static void proxy_protocol_move(struct proxy_header_value *value, const uint8_t *from, uint8_t *to)
{
    if (value->at)
        value->at = to + (value->at - from);
}

/* Copy header.tlvs, which has the values of header.tls: a decoded header is removed. */
static int proxy_protocol_keep(struct proxy_protocol *pp)
{
    struct proxy_header_tls *tls = &pp->header.tls;
    struct proxy_header_value *all = &pp->header.tlvs;

    if (all->n == 0)
        return 0;
    pp->told = malloc(all->n);
    if (!pp->told)
        return -ENOMEM;
    memcpy(pp->told, all->at, all->n);
    proxy_protocol_move(&tls->alpn, all->at, pp->told);
    proxy_protocol_move(&tls->authority, all->at, pp->told);
    proxy_protocol_move(&tls->ssl, all->at, pp->told);
    all->at = pp->told;
    return 0;
}

static int proxy_protocol_decode(struct preface_handler *p, const uint8_t *data, size_t len)
{
    struct proxy_protocol *pp = proxy_protocol_of(p);
    int n = proxy_header_decode(&pp->header, data, len);

    if (n > 0 && proxy_protocol_keep(pp) < 0)
        return -ENOMEM;
    return n == -ENOMSG && proxy_protocol_optional(pp) ? 0 : n;
}

static int proxy_protocol_conclude(struct preface_handler *p, int error)
{
    bool begun = buffer_bytes(&p->held) > 0 &&
                 proxy_header_begun(buffer_front(&p->held), buffer_bytes(&p->held));

    return proxy_protocol_optional(proxy_protocol_of(p)) && !begun ? 0 : error;
}

static void proxy_protocol_done(struct preface_handler *p, int error)
{
    struct proxy_protocol *pp = proxy_protocol_of(p);

    pp->done(pp, error);
}

static const struct preface_handler_ops proxy_protocol_ops = {.decode = proxy_protocol_decode,
                                                              .conclude = proxy_protocol_conclude,
                                                              .done = proxy_protocol_done};

void proxy_protocol_add(struct proxy_protocol *pp, struct channel *ch,
                        struct proxy_protocol_gate *gate,
                        void (*done)(struct proxy_protocol *pp, int error))
{
    *pp = (struct proxy_protocol){.gate = gate, .done = done, .header.local = true};
    preface_handler_add(&pp->preface, ch, &proxy_protocol_ops);
}

void proxy_protocol_set_gate(struct proxy_protocol *pp, struct proxy_protocol_gate *gate)
{
    pp->gate = gate;
}

/* Move ${value} to *${at}, and advance *${at}. */
static void proxy_protocol_gather(struct proxy_header_value *value, uint8_t **at)
{
    if (value->n == 0)
        return;
    memcpy(*at, value->at, value->n);
    value->at = *at;
    *at += value->n;
}

void proxy_protocol_trim(struct proxy_protocol *pp)
{
    struct proxy_header_tls *tls = &pp->header.tls;
    size_t bytes = tls->alpn.n + tls->authority.n + tls->ssl.n;
    uint8_t *all = pp->told, *kept, *at;

    if (!all || bytes == pp->header.tlvs.n)
        return;
    kept = at = bytes > 0 ? malloc(bytes) : NULL;
    if (bytes > 0 && !kept)
        return; /* keep all */
    proxy_protocol_gather(&tls->alpn, &at);
    proxy_protocol_gather(&tls->authority, &at);
    proxy_protocol_gather(&tls->ssl, &at);
    pp->told = kept;
    pp->header.tlvs = (struct proxy_header_value){NULL, 0};
    free(all);
}

void proxy_protocol_free(struct proxy_protocol *pp)
{
    free(pp->told);
    pp->told = NULL;
}
