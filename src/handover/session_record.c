#include "handover/session_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "service/session_state.h"
#include "stats/session_reason.h"

#define SESSION_RECORD_MAGIC "RSES"

struct session_record_head {
    char magic[4];
    uint32_t version;
    uint64_t bytes; /* of the record, this included */
};

enum session_record_kind {
    SESSION_RECORD_NUMBER,  /* `size` bytes as in memory */
    SESSION_RECORD_INSTANT, /* int64_t, not negative */
    SESSION_RECORD_FLAG,    /* uint8_t, 0 or 1 */
    SESSION_RECORD_TEXT,
    SESSION_RECORD_ADDRESS,
    SESSION_RECORD_BYTES /* pointer and length */
};

struct session_record_field {
    enum session_record_kind kind;
    size_t at, size;
    size_t length_at; /* of SESSION_RECORD_BYTES */
};

#define FIELD(kind, type, member)                                                     \
    {                                                                                 \
        SESSION_RECORD_##kind, offsetof(type, member), sizeof(((type *)0)->member), 0 \
    }
#define OF_SESSION(kind, member) FIELD(kind, struct session_state, member)
#define OF_LEG(kind, member)     FIELD(kind, struct session_state_leg, member)
#define OF_HANDLER(kind, member) FIELD(kind, struct handler_state, member)

static const struct session_record_field session_record_fields[] = {
    OF_SESSION(TEXT, listener),         OF_SESSION(TEXT, upstream),
    OF_SESSION(TEXT, server),           OF_SESSION(ADDRESS, client),
    OF_SESSION(ADDRESS, listen),        OF_SESSION(NUMBER, id),
    OF_SESSION(NUMBER, numbers),        OF_SESSION(INSTANT, began_at_ns),
    OF_SESSION(INSTANT, opened_at_ns),  OF_SESSION(INSTANT, expires_at_ns),
    OF_SESSION(INSTANT, checked_at_ns), OF_SESSION(INSTANT, last_read_updated_at_ns),
    OF_SESSION(NUMBER, counted_in),     OF_SESSION(NUMBER, counted_out),
    OF_SESSION(NUMBER, access_lines),   OF_SESSION(NUMBER, queue_us),
    OF_SESSION(NUMBER, connect_us),     OF_SESSION(NUMBER, first_byte_us),
    OF_SESSION(NUMBER, tries),          OF_SESSION(NUMBER, reason),
    OF_SESSION(FLAG, has_open_line),    OF_SESSION(FLAG, awaits_client),
    OF_SESSION(FLAG, awaits_server),    OF_SESSION(NUMBER, n_handlers),
};

static const struct session_record_field session_record_leg_fields[] = {
    OF_LEG(NUMBER, bytes_in),
    OF_LEG(NUMBER, bytes_out),
    OF_LEG(INSTANT, last_io_at_ns),
    OF_LEG(NUMBER, last_read_bytes),
    OF_LEG(INSTANT, last_read_at_ns),
    OF_LEG(INSTANT, fin_at_ns),
    OF_LEG(INSTANT, bucket_full_at_ns[0]),
    OF_LEG(INSTANT, bucket_full_at_ns[1]),
    OF_LEG(FLAG, read_ended),
    OF_LEG(FLAG, eof_wanted),
    OF_LEG(FLAG, eof_sent),
    OF_LEG(FLAG, unwritable),
    OF_LEG(NUMBER, piped),
    {SESSION_RECORD_BYTES, offsetof(struct session_state_leg, unsent), 0,
     offsetof(struct session_state_leg, n_unsent)},
};

static const struct session_record_field session_record_handler_fields[] = {
    OF_HANDLER(TEXT, name),
    OF_HANDLER(NUMBER, values),
    {SESSION_RECORD_BYTES, offsetof(struct handler_state, bytes), 0,
     offsetof(struct handler_state, n)},
};

/* ---- writing; a first pass without `out` counts the bytes ---- */

struct session_record_writer {
    uint8_t *out; /* NULL: only count */
    size_t n;
};

static void session_record_put(struct session_record_writer *w, const void *data, size_t n)
{
    if (w->out && n > 0)
        memcpy(w->out + w->n, data, n);
    w->n += n;
}

static void session_record_put_counted(struct session_record_writer *w, const void *data, size_t n)
{
    uint64_t length = n;

    session_record_put(w, &length, sizeof(length));
    session_record_put(w, data, n);
}

static void session_record_put_field(struct session_record_writer *w,
                                     const struct session_record_field *f, const void *of)
{
    const void *value = (const char *)of + f->at;
    const struct address *a = value;
    const char *text;
    const uint8_t *bytes;
    size_t n;

    switch (f->kind) {
    case SESSION_RECORD_NUMBER:
    case SESSION_RECORD_INSTANT:
    case SESSION_RECORD_FLAG: session_record_put(w, value, f->size); break;
    case SESSION_RECORD_TEXT:
        memcpy(&text, value, sizeof(text));
        session_record_put_counted(w, text, strlen(text) + 1);
        break;
    case SESSION_RECORD_ADDRESS:
        session_record_put(w, &a->netns, sizeof(a->netns));
        session_record_put_counted(w, &a->u, a->len);
        break;
    case SESSION_RECORD_BYTES:
        memcpy(&bytes, value, sizeof(bytes));
        memcpy(&n, (const char *)of + f->length_at, sizeof(n));
        session_record_put_counted(w, bytes, n);
        break;
    }
}

static void session_record_put_all(struct session_record_writer *w, const struct session_state *st,
                                   size_t total)
{
    const struct session_record_head head = {
        .magic = SESSION_RECORD_MAGIC, .version = SESSION_RECORD_VERSION, .bytes = total};

    session_record_put(w, &head, sizeof(head));
    for (unsigned i = 0; i < ARRAY_LEN(session_record_fields); i++)
        session_record_put_field(w, &session_record_fields[i], st);
    for (unsigned leg = 0; leg < ARRAY_LEN(st->legs); leg++)
        for (unsigned i = 0; i < ARRAY_LEN(session_record_leg_fields); i++)
            session_record_put_field(w, &session_record_leg_fields[i], &st->legs[leg]);
    for (unsigned h = 0; h < st->n_handlers; h++)
        for (unsigned i = 0; i < ARRAY_LEN(session_record_handler_fields); i++)
            session_record_put_field(w, &session_record_handler_fields[i], &st->handlers[h]);
}

static bool session_record_texts_fit(const struct session_state *st)
{
    return strlen(st->listener) < SESSION_RECORD_TEXT_BYTES &&
           strlen(st->upstream) < SESSION_RECORD_TEXT_BYTES &&
           strlen(st->server) < SESSION_RECORD_TEXT_BYTES;
}

int session_record_encode(uint8_t **out, size_t *n, const struct session_state *st)
{
    struct session_record_writer count = {.out = NULL}, w = {.n = 0};

    session_record_put_all(&count, st, 0);
    if (!session_record_texts_fit(st) || count.n > SESSION_RECORD_MAX_BYTES)
        return -EMSGSIZE;
    w.out = malloc(count.n);
    if (!w.out)
        return -ENOMEM;
    session_record_put_all(&w, st, count.n);
    MUST(w.n == count.n);
    *out = w.out;
    *n = w.n;
    return 0;
}

/* ---- reading ---- */

struct session_record_reader {
    const uint8_t *at;
    size_t left;
};

/* The next ${n} bytes, or NULL. */
static const uint8_t *session_record_take(struct session_record_reader *r, uint64_t n)
{
    const uint8_t *at = r->at;

    if (n > r->left)
        return NULL;
    r->at += n;
    r->left -= (size_t)n;
    return at;
}

static int session_record_get(struct session_record_reader *r, void *out, size_t n)
{
    const uint8_t *at = session_record_take(r, n);

    if (!at)
        return -EMSGSIZE;
    memcpy(out, at, n);
    return 0;
}

static int session_record_get_counted(struct session_record_reader *r, const uint8_t **out,
                                      size_t *n)
{
    uint64_t length;
    int rc = session_record_get(r, &length, sizeof(length));

    if (rc < 0)
        return rc;
    *out = session_record_take(r, length);
    if (!*out)
        return -EMSGSIZE;
    *n = (size_t)length;
    return 0;
}

static int session_record_get_text(struct session_record_reader *r, void *out)
{
    const uint8_t *bytes;
    const char *text;
    size_t n;
    int rc = session_record_get_counted(r, &bytes, &n);

    if (rc < 0)
        return rc;
    if (n == 0 || n > SESSION_RECORD_TEXT_BYTES || memchr(bytes, '\0', n) != bytes + n - 1)
        return -EINVAL;
    text = (const char *)bytes;
    memcpy(out, &text, sizeof(text));
    return 0;
}

static bool session_record_is_address(const struct address *a)
{
    size_t path_at = offsetof(struct sockaddr_un, sun_path);

    if (a->len == 0)
        return true;
    if (a->len < sizeof(a->u.sa.sa_family))
        return false;
    switch (a->u.sa.sa_family) {
    case AF_INET: return a->len == sizeof(a->u.in);
    case AF_INET6: return a->len == sizeof(a->u.in6);
    case AF_UNIX: break;
    default: return false;
    }
    if (a->len <= path_at || a->u.un.sun_path[0] == '\0')
        return a->len <= sizeof(a->u.un); /* unnamed or abstract */
    return a->len <= sizeof(a->u.un) && memchr(a->u.un.sun_path, '\0', a->len - path_at);
}

static int session_record_get_address(struct session_record_reader *r, struct address *a)
{
    const uint8_t *bytes;
    size_t n;
    int rc = session_record_get(r, &a->netns, sizeof(a->netns));

    if (rc == 0)
        rc = session_record_get_counted(r, &bytes, &n);
    if (rc < 0)
        return rc;
    if (n > sizeof(a->u))
        return -EINVAL;
    memcpy(&a->u, bytes, n);
    a->len = (socklen_t)n;
    return session_record_is_address(a) ? 0 : -EINVAL;
}

static int session_record_get_bytes(struct session_record_reader *r, void *out, void *length)
{
    const uint8_t *bytes;
    size_t n;
    int rc = session_record_get_counted(r, &bytes, &n);

    if (rc < 0)
        return rc;
    memcpy(out, &bytes, sizeof(bytes));
    memcpy(length, &n, sizeof(n));
    return 0;
}

static int session_record_get_field(struct session_record_reader *r,
                                    const struct session_record_field *f, void *of)
{
    char *value = (char *)of + f->at;
    int64_t ns;
    int rc;

    switch (f->kind) {
    case SESSION_RECORD_NUMBER: return session_record_get(r, value, f->size);
    case SESSION_RECORD_INSTANT:
        rc = session_record_get(r, value, f->size);
        memcpy(&ns, value, sizeof(ns));
        return rc == 0 && ns < 0 ? -EINVAL : rc;
    case SESSION_RECORD_FLAG:
        rc = session_record_get(r, value, f->size);
        return rc == 0 && *(uint8_t *)value > 1 ? -EINVAL : rc;
    case SESSION_RECORD_TEXT: return session_record_get_text(r, value);
    case SESSION_RECORD_ADDRESS: return session_record_get_address(r, (struct address *)value);
    case SESSION_RECORD_BYTES: return session_record_get_bytes(r, value, (char *)of + f->length_at);
    }
    return -EINVAL;
}

static int session_record_get_head(struct session_record_reader *r)
{
    struct session_record_head head;
    size_t n = r->left;

    if (session_record_get(r, &head, sizeof(head)) < 0)
        return -EMSGSIZE;
    if (memcmp(head.magic, SESSION_RECORD_MAGIC, sizeof(head.magic)) != 0)
        return -EINVAL;
    if (head.version != SESSION_RECORD_VERSION)
        return -EPROTONOSUPPORT;
    return head.bytes == n && n <= SESSION_RECORD_MAX_BYTES ? 0 : -EMSGSIZE;
}

/* What a session can be, whatever the fields say. */
static bool session_record_is_possible(const struct session_state *st)
{
    bool has_server = session_state_has_server(st);

    if (*st->listener == '\0' || has_server != (*st->server != '\0') || st->client.len == 0 ||
        st->reason >= SESSION_REASONS)
        return false;
    for (unsigned i = 0; i < ARRAY_LEN(st->legs); i++) {
        const struct session_state_leg *leg = &st->legs[i];
        bool is_pending = leg->n_unsent > 0 || leg->piped > 0;

        if (leg->eof_sent && (leg->eof_wanted || is_pending))
            return false;
        if ((leg->eof_wanted || leg->unwritable) && !is_pending)
            return false;
        if ((leg->eof_sent || leg->eof_wanted) && !st->legs[has_server ? 1 - i : i].read_ended)
            return false;
        if (leg->read_ended && leg->eof_sent)
            return false; /* it has ended */
        if (i == 1 && !has_server && is_pending)
            return false;
    }
    return true;
}

int session_record_decode(struct session_state *st, const uint8_t *data, size_t n)
{
    struct session_record_reader r = {data, n};
    int rc = session_record_get_head(&r);

    *st = (struct session_state){.listener = NULL};
    for (unsigned i = 0; rc == 0 && i < ARRAY_LEN(session_record_fields); i++)
        rc = session_record_get_field(&r, &session_record_fields[i], st);
    for (unsigned leg = 0; leg < ARRAY_LEN(st->legs); leg++)
        for (unsigned i = 0; rc == 0 && i < ARRAY_LEN(session_record_leg_fields); i++)
            rc = session_record_get_field(&r, &session_record_leg_fields[i], &st->legs[leg]);
    if (rc == 0 && st->n_handlers > ARRAY_LEN(st->handlers))
        return -EINVAL;
    for (unsigned h = 0; h < st->n_handlers; h++)
        for (unsigned i = 0; rc == 0 && i < ARRAY_LEN(session_record_handler_fields); i++)
            rc = session_record_get_field(&r, &session_record_handler_fields[i], &st->handlers[h]);
    if (rc == 0 && r.left > 0)
        rc = -EMSGSIZE;
    if (rc == 0 && !session_record_is_possible(st))
        rc = -EINVAL;
    return rc;
}
