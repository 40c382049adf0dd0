#include "sessions/session_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/loop.h"
#include "service/session.h"
#include "stats/access_log_record.h"

static const char *session_row_state(const struct session *s)
{
    if (s->phase >= SESSION_PHASE_CLOSING)
        return "closing";
    if (s->phase == SESSION_PHASE_PREFACE)
        return s->preface & 1 << SESSION_PREFACE_HEADER ? "header" : "hello";
    if (s->phase == SESSION_PHASE_CONNECTING)
        return "connecting";
    if (s->legs[1] && channel_read_ended(s->legs[0]) != channel_read_ended(s->legs[1]))
        return channel_read_ended(s->legs[0]) ? "client_closed" : "server_closed";
    return s->draining || s->leaving ? "draining" : "open";
}

static size_t session_row_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *session_row_copy(char **at, const char *text)
{
    size_t bytes = session_row_bytes(text);
    char *copy = *at;

    if (!text)
        return NULL;
    memcpy(copy, text, bytes);
    *at += bytes;
    return copy;
}

static int64_t session_row_since_ns(int64_t now_ns, int64_t at_ns)
{
    return now_ns > at_ns ? now_ns - at_ns : 0;
}

static int64_t session_row_load_us(const struct session *s, int64_t now_ns)
{
    return event_load_known(&s->owner->net->timing, now_ns) ? (int64_t)session_load_us(s, now_ns)
                                                            : -1;
}

/* Copy all names except the loop's name, which lives as long as the server. */
int session_row_create(struct session_row **out, struct session *s, int64_t now_ns)
{
    struct access_log_record r = {.upstream = NULL};
    const struct channel *client = s->legs[0];
    struct session_row *row;
    char *at;

    if (s->service->ops->describe)
        s->service->ops->describe(s, &r);
    row = malloc(sizeof(*row) + session_row_bytes(s->service->listener) +
                 session_row_bytes(r.upstream) + session_row_bytes(r.server));
    if (!row)
        return -ENOMEM;
    at = row->text;
    *row = (struct session_row){.id = *session_id(s),
                                .client = s->peer,
                                .listener = session_row_copy(&at, s->service->listener),
                                .upstream = session_row_copy(&at, r.upstream),
                                .server = session_row_copy(&at, r.server),
                                .loop = loop_name(s->owner->net->loop),
                                .state = session_row_state(s),
                                .age_ns = session_row_since_ns(now_ns, s->began_at_ns),
                                .idle_ns = session_row_since_ns(now_ns, session_active_at_ns(s)),
                                .load_us = session_row_load_us(s, now_ns),
                                .bytes_in = client ? client->bytes_in : 0,
                                .bytes_out = client ? client->bytes_out : 0};
    *out = row;
    return 0;
}
