/*
 * sessions/session_filter: selects sessions by listener, upstream, server, client, loop, age, idle
 * time, bytes or ID.
 */
#ifndef SESSIONS_SESSION_FILTER_H
#define SESSIONS_SESSION_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "net/cidr.h"
#include "stats/session_id.h"

struct session;

/* Longest name of a listener, upstream, server or loop, with NUL. */
#define SESSION_FILTER_NAME_BYTES 256

/* "" and 0 select any session. */
struct session_filter {
    char listener[SESSION_FILTER_NAME_BYTES];
    char upstream[SESSION_FILTER_NAME_BYTES];
    char server[SESSION_FILTER_NAME_BYTES]; /* of `upstream`: server name or server line ID */
    char loop[SESSION_FILTER_NAME_BYTES];
    bool has_client, has_id;
    bool only_connected; /* skip sessions in their preface, or connecting to a server */
    struct cidr client;
    struct session_id id;
    int64_t min_age_ns;
    int64_t min_idle_ns;
    uint64_t min_bytes; /* in both directions together */
};

/*
 * session_filter_set(f, key, value):
 * Set one condition: listener=NAME, upstream=NAME, server=UPSTREAM/NAME, client=CIDR, loop=NAME,
 * min_age=10s, min_idle=10s, min_bytes=1m, id=ID.
 *
 * Thread: owner of ${f}
 * Errors: NULL; or why the condition is refused, a literal such as `is not a duration, such as 10s`
 */
const char *session_filter_set(struct session_filter *f, const char *key,
                               const char *value) NODISCARD;

/*
 * session_filter_matches(f, s, now_ns):
 * Does ${f} select ${s}? A session that is ending is never selected.
 *
 * Thread: loop of ${s}
 */
bool session_filter_matches(const struct session_filter *f, struct session *s, int64_t now_ns);

#endif
