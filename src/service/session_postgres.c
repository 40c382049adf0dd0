#include "service/session_postgres.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/log.h"
#include "handlers/preface_handler.h"
#include "service/session_hello.h"
#include "service/session_internal.h"
#include "service/session_tls.h"
#include "upstream/route.h"

#define POSTGRES_REQUEST_BYTES 8

/* First byte of a TLS record that carries a handshake message. */
#define POSTGRES_TLS_BYTE 0x16

/* Request messages; the first four bytes are the length. */
static const uint8_t postgres_ssl_request[] = {0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f};
static const uint8_t postgres_gssenc_request[] = {0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30};

/* CancelRequest: length, code, process ID, key of 4 to 256 bytes (PostgreSQL 17: always 4). */
#define POSTGRES_CANCEL_MIN_BYTES 16
#define POSTGRES_CANCEL_MAX_BYTES 268

static const uint8_t postgres_cancel_code[] = {0x04, 0xd2, 0x16, 0x2e};

/* ErrorResponse: type, length, fields that end with 0. */
static const char postgres_refusal[] =
    "E\0\0\0\x4cSFATAL\0VFATAL\0C28000\0Mthis port requires an encrypted connection (TLS)\0";
_Static_assert(sizeof(postgres_refusal) == 1 + 0x4c, "length of the message");

struct session_postgres {
    alignas(max_align_t) struct preface_handler reader;
    struct session *session;
    int64_t timeout_ns;
    bool refused_gssenc; /* the client began with a GSSENCRequest (8 bytes), refused */
    bool cancels;        /* the client has sent a CancelRequest, and begins no TLS */
};

static struct session_postgres *session_postgres_of(struct preface_handler *p)
{
    return CONTAINER_OF(p, struct session_postgres, reader);
}

static int session_postgres_answer(struct session_postgres *o, const char *text, size_t len)
{
    return handler_write(&o->reader.handler, text, len);
}

static int session_postgres_decode_request(struct session_postgres *o, const uint8_t *request,
                                           size_t len)
{
    if (memcmp(request, postgres_ssl_request, POSTGRES_REQUEST_BYTES) == 0)
        return len == POSTGRES_REQUEST_BYTES ? 0 : -EBADMSG;
    if (memcmp(request, postgres_gssenc_request, POSTGRES_REQUEST_BYTES) != 0 || o->refused_gssenc)
        return -ENOMSG;
    o->refused_gssenc = true;
    return session_postgres_answer(o, "N", 1) < 0 ? -EPIPE : -EAGAIN;
}

static bool session_postgres_is_cancel(const uint8_t *request)
{
    return memcmp(request + 4, postgres_cancel_code, sizeof(postgres_cancel_code)) == 0;
}

static int session_postgres_decode_cancel(struct session_postgres *o, const uint8_t *request,
                                          size_t len)
{
    uint32_t bytes = (uint32_t)request[0] << 24 | (uint32_t)request[1] << 16 |
                     (uint32_t)request[2] << 8 | request[3];

    if (bytes < POSTGRES_CANCEL_MIN_BYTES || bytes > POSTGRES_CANCEL_MAX_BYTES || len > bytes)
        return -EINVAL;
    o->cancels = len == bytes;
    return o->cancels ? 0 : -EAGAIN;
}

static int session_postgres_decode(struct preface_handler *p, const uint8_t *data, size_t len)
{
    struct session_postgres *o = session_postgres_of(p);
    size_t before = o->refused_gssenc ? POSTGRES_REQUEST_BYTES : 0;
    int rc;

    if (data[0] == POSTGRES_TLS_BYTE)
        return 0;
    if (len - before < POSTGRES_REQUEST_BYTES)
        return -EAGAIN;
    if (session_postgres_is_cancel(data + before)) {
        rc = session_postgres_decode_cancel(o, data + before, len - before);
        return rc < 0 ? rc : (int)before;
    }
    rc = session_postgres_decode_request(o, data + before, len - before);
    if (rc == 0)
        rc = session_postgres_answer(o, "S", 1) < 0 ? -EPIPE : (int)len;
    else if (rc == -ENOMSG)
        (void)!session_postgres_answer(o, postgres_refusal, sizeof(postgres_refusal));
    return rc;
}

static int session_postgres_conclude(struct preface_handler *p, int error)
{
    (void)p;
    return error;
}

static const char *session_postgres_why(int error)
{
    switch (error) {
    case -EINVAL: return "its CancelRequest is not well-formed";
    case -EBADMSG: return "unencrypted bytes follow the SSLRequest";
    case -ENOMSG: return "the client does not ask for TLS";
    case -ETIMEDOUT: return "no SSLRequest within handshake_timeout";
    case -EPROTO: return "the client closed the connection";
    default: return strerror(-error);
    }
}

static void session_postgres_failed(struct session_postgres *o, int error)
{
    static struct log_limit limit;
    struct session *s = o->session;
    char peer[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (error == -ENODATA) {
        session_close(s, SESSION_CLIENT_FIN);
        return;
    }
    if (log_allowed(&limit, NS_PER_S, &suppressed))
        log_warning("listen %s: client %s: TLS did not begin: %s; the client is reset%s",
                    s->service->listener, address_format(peer, sizeof(peer), &s->peer),
                    session_postgres_why(error), LOG_SUPPRESSED(suppressed));
    if (error == -EINVAL || error == -EBADMSG || error == -ENOMSG)
        session_offend(s, BAN_OFFENCE_TLS);
    session_reset(s, SESSION_TLS_HANDSHAKE);
}

/* Skip TLS, and the choice of the upstream by it. */
static void session_postgres_cancel(struct session_postgres *o)
{
    static const uint8_t alpn[] = "\x0apostgresql";
    struct session *s = o->session;
    struct route_client client = {.address = &s->peer,
                                  .hello = ROUTE_HELLO_READ,
                                  .sni = "",
                                  .alpn = {alpn, sizeof(alpn) - 1},
                                  .is_complete = true};
    bool is_echo = !s->service->routes && !s->service->upstream;
    int rc = is_echo ? 0 : session_hello_route(s, &client);

    if (rc < 0) {
        session_hello_refuse(s, "", rc);
        return;
    }
    s->preface = 1 << SESSION_PREFACE_POSTGRES;
    session_preface_done(s);
}

static void session_postgres_done(struct preface_handler *p, int error)
{
    struct session_postgres *o = session_postgres_of(p);

    if (error < 0)
        session_postgres_failed(o, error);
    else if (o->cancels)
        session_postgres_cancel(o);
    else
        session_preface_done(o->session);
}

static const struct preface_handler_ops session_postgres_ops = {
    .decode = session_postgres_decode,
    .conclude = session_postgres_conclude,
    .done = session_postgres_done,
};

static size_t session_postgres_bytes(const struct service *service)
{
    return service->tls && service->tls->postgres ? sizeof(struct session_postgres) : 0;
}

static void session_postgres_begin(struct session *s, struct channel *ch, void *memory)
{
    const struct session_tls_conf *conf = s->service->tls;
    struct session_postgres *o = memory;

    *o = (struct session_postgres){.session = s, .timeout_ns = conf ? conf->timeout_ns : 0};
    if (!conf) { /* a reload has ended TLS on this listener */
        session_abort(s, SESSION_DRAIN);
        return;
    }
    preface_handler_add(&o->reader, ch, &session_postgres_ops);
}

static size_t session_postgres_rest_bytes(const void *memory)
{
    return preface_handler_rest_bytes(&((const struct session_postgres *)memory)->reader);
}

static void session_postgres_release(void *memory)
{
    struct session_postgres *o = memory;
    struct channel *ch = o->reader.handler.channel;

    preface_handler_release(&o->reader);
    if (o->cancels) /* further bytes would come without TLS */
        channel_end_input(ch, ch->pipeline.head);
}

static int64_t session_postgres_timeout_ns(const struct session *s, const void *memory)
{
    (void)s;
    return ((const struct session_postgres *)memory)->timeout_ns;
}

static void session_postgres_give_up(void *memory)
{
    preface_handler_give_up(&((struct session_postgres *)memory)->reader);
}

const struct session_preface_stage session_postgres_stage = {
    .bytes = session_postgres_bytes,
    .begin = session_postgres_begin,
    .rest_bytes = session_postgres_rest_bytes,
    .release = session_postgres_release,
    .timeout_ns = session_postgres_timeout_ns,
    .give_up = session_postgres_give_up,
};
