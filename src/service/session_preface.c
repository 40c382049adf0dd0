#include "service/session_preface.h"

#include <errno.h>
#include <stdalign.h>

#include "base/log.h"
#include "handlers/proxy_protocol.h"
#include "service/session_handlers.h"
#include "service/session_internal.h"

struct session_preface {
    alignas(max_align_t) struct proxy_protocol header;
    struct session *session;
    struct address proxy; /* sender of a header that names a client */
    void *handlers_room;  /* memory of the handlers added after the header */
};

/* A client that closes without sending a byte, as port checks do, is no error. */
static void session_preface_failed(struct session *s, int error)
{
    if (error == -ENODATA) {
        session_close(s, SESSION_CLIENT_FIN);
        return;
    }
    proxy_protocol_log_refusal(s->service->proxies, &s->peer, error);
    session_abort(s, error == -ETIMEDOUT ? SESSION_IDLE : SESSION_ERROR);
}

static void session_preface_rename(struct session_preface *o)
{
    struct session *s = o->session;
    const struct address *client = &o->header.header.source;
    char proxy[ADDRESS_TEXT_BYTES], text[ADDRESS_TEXT_BYTES];

    if (log_wanted(LOG_LEVEL_DEBUG))
        log_debug("listen %s: %s is the client of the proxy %s", s->service->listener,
                  address_format(text, sizeof(text), client),
                  address_format(proxy, sizeof(proxy), &s->peer));
    o->proxy = s->peer;
    s->peer = *client;
}

/* Byte counts and timeouts begin here: the header does not count. */
static void session_preface_done(struct proxy_protocol *pp, int error)
{
    struct session_preface *o = CONTAINER_OF(pp, struct session_preface, header);
    struct session *s = o->session;

    s->preface = false;
    s->legs[0]->bytes_in = proxy_protocol_rest_bytes(pp);
    if (error < 0) {
        session_preface_failed(s, error);
        return;
    }
    if (!pp->header.local)
        session_preface_rename(o);
    s->opened_at_ns = loop_now_ns(s->owner->net->loop);
    if (!session_admit(s, &s->peer))
        return;
    session_handlers_add_template(s, s->legs[0], o->handlers_room);
    s->service->ops->start(s);
    session_timer_arm(s);
}

size_t session_preface_bytes(const struct service *service)
{
    const struct proxy_protocol_gate *gate = service->proxies;

    return gate && gate->conf->mode != PROXY_PROTOCOL_OFF ? sizeof(struct session_preface) : 0;
}

void session_preface_add(struct session *s, struct channel *ch, void *room, void *handlers_room)
{
    struct session_preface *o = room;

    o->session = s;
    o->handlers_room = handlers_room;
    proxy_protocol_add(&o->header, ch, s->service->proxies, session_preface_done);
    s->proxied = &o->header;
}

void session_preface_read(struct session *s)
{
    if (s->proxied)
        proxy_protocol_release(s->proxied);
    else
        channel_start(s->legs[0]);
}

int64_t session_preface_timeout_ns(const struct session *s)
{
    return s->service->proxies->conf->timeout_ns;
}

void session_preface_give_up(struct session *s)
{
    proxy_protocol_give_up(s->proxied);
}

static bool session_preface_is_named(const struct session *s)
{
    return s->proxied && !s->proxied->header.local;
}

const struct address *session_preface_proxy(const struct session *s)
{
    return session_preface_is_named(s)
               ? &CONTAINER_OF(s->proxied, struct session_preface, header)->proxy
               : NULL;
}

const struct address *session_preface_destination(const struct session *s)
{
    return session_preface_is_named(s) ? &s->proxied->header.destination : NULL;
}
