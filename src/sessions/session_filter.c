#include "sessions/session_filter.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "engine/loop.h"
#include "service/session.h"
#include "stats/access_log_record.h"

/* Longest duration, as in the configuration. */
#define SESSION_FILTER_MAX_NS (10000 * NS_PER_DAY)

static const char *session_filter_set_name(char *name, const char *value)
{
    size_t len = strlen(value);

    if (len == 0)
        return "is empty";
    if (len >= SESSION_FILTER_NAME_BYTES)
        return "is too long for a name";
    memcpy(name, value, len + 1);
    return NULL;
}

static const char *session_filter_set_listener(struct session_filter *f, const char *value)
{
    return session_filter_set_name(f->listener, value);
}

static const char *session_filter_set_upstream(struct session_filter *f, const char *value)
{
    if (f->upstream[0] != '\0' && strcmp(f->upstream, value) != 0)
        return "is not the upstream of the server";
    return session_filter_set_name(f->upstream, value);
}

static const char *session_filter_set_server(struct session_filter *f, const char *value)
{
    const char *slash = strchr(value, '/');
    char upstream[SESSION_FILTER_NAME_BYTES];
    const char *why;

    if (!slash || slash == value || slash[1] == '\0')
        return "is not UPSTREAM/SERVER";
    if ((size_t)(slash - value) >= sizeof(upstream))
        return "is too long for a name";
    memcpy(upstream, value, (size_t)(slash - value));
    upstream[slash - value] = '\0';
    why = session_filter_set_upstream(f, upstream);
    return why ? why : session_filter_set_name(f->server, slash + 1);
}

static const char *session_filter_set_loop(struct session_filter *f, const char *value)
{
    return session_filter_set_name(f->loop, value);
}

static const char *session_filter_set_client(struct session_filter *f, const char *value)
{
    f->has_client = true;
    switch (cidr_parse(&f->client, value)) {
    case 0: return NULL;
    case -ERANGE: return "has a prefix longer than the address";
    case -EDOM: return "has bits set behind the prefix";
    default: return "is not an address, a block such as 10.0.0.0/8, or unix";
    }
}

static const char *session_filter_set_duration(int64_t *ns, const char *value)
{
    switch (parse_duration(ns, value, SESSION_FILTER_MAX_NS)) {
    case 0: return NULL;
    case -ERANGE: return "is more than 10000d";
    default: return "is not a duration, such as 10s";
    }
}

static const char *session_filter_set_min_age(struct session_filter *f, const char *value)
{
    return session_filter_set_duration(&f->min_age_ns, value);
}

static const char *session_filter_set_min_idle(struct session_filter *f, const char *value)
{
    return session_filter_set_duration(&f->min_idle_ns, value);
}

static const char *session_filter_set_min_bytes(struct session_filter *f, const char *value)
{
    switch (parse_size(&f->min_bytes, value, INT64_MAX)) {
    case 0: return NULL;
    case -ERANGE: return "is too large";
    default: return "is not a number of bytes, such as 64k";
    }
}

static const char *session_filter_set_id(struct session_filter *f, const char *value)
{
    f->has_id = true;
    return session_id_parse(&f->id, value) < 0 ? "is not an ID: 32 hex digits" : NULL;
}

static const struct session_filter_key {
    const char *key;
    const char *(*set)(struct session_filter *f, const char *value);
} session_filter_keys[] = {
    {"listener", session_filter_set_listener},
    {"upstream", session_filter_set_upstream},
    {"server", session_filter_set_server},
    {"client", session_filter_set_client},
    {"loop", session_filter_set_loop},
    {"min_age", session_filter_set_min_age},
    {"min_idle", session_filter_set_min_idle},
    {"min_bytes", session_filter_set_min_bytes},
    {"id", session_filter_set_id},
};

const char *session_filter_set(struct session_filter *f, const char *key, const char *value)
{
    for (unsigned i = 0; i < ARRAY_LEN(session_filter_keys); i++)
        if (strcmp(session_filter_keys[i].key, key) == 0)
            return session_filter_keys[i].set(f, value);
    return "is not a known field";
}

static bool session_filter_is_name(const char *wanted, const char *name)
{
    return wanted[0] == '\0' || (name && strcmp(wanted, name) == 0);
}

/* ${wanted} may be the ID of a server line; if that has several servers, they are ID@ADDRESS. */
static bool session_filter_is_server(const char *wanted, const char *name)
{
    size_t len = strlen(wanted);

    return session_filter_is_name(wanted, name) ||
           (name && strncmp(wanted, name, len) == 0 && name[len] == '@');
}

static bool session_filter_has_bytes(const struct session_filter *f, const struct session *s)
{
    const struct channel *client = s->legs[0];

    return f->min_bytes == 0 || (client && client->bytes_in + client->bytes_out >= f->min_bytes);
}

static bool session_filter_is_at(const struct session_filter *f, const struct session *s)
{
    struct access_log_record r = {.upstream = NULL};

    if (f->upstream[0] == '\0')
        return true;
    if (s->service->ops->describe)
        s->service->ops->describe(s, &r);
    return session_filter_is_name(f->upstream, r.upstream) &&
           session_filter_is_server(f->server, r.server);
}

/* A session may have moved bytes since ${now_ns}, the time of the question. */
static bool session_filter_is_idle(const struct session_filter *f, struct session *s,
                                   int64_t now_ns)
{
    return f->min_idle_ns == 0 || now_ns - session_active_at_ns(s) >= f->min_idle_ns;
}

bool session_filter_matches(const struct session_filter *f, struct session *s, int64_t now_ns)
{
    if (s->phase == SESSION_PHASE_ENDING || (f->only_connected && s->phase < SESSION_PHASE_OPEN))
        return false;
    if (f->has_id) {
        const struct session_id *id = session_id(s);

        if (id->high != f->id.high || id->low != f->id.low)
            return false;
    }
    return session_filter_is_name(f->listener, s->service->listener) &&
           session_filter_is_name(f->loop, loop_name(s->owner->net->loop)) &&
           (!f->has_client || cidr_has(&f->client, &s->peer)) &&
           now_ns - s->began_at_ns >= f->min_age_ns && session_filter_is_idle(f, s, now_ns) &&
           session_filter_has_bytes(f, s) && session_filter_is_at(f, s);
}
