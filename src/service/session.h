/*
 * service/session: one client connection: its channels, timer and end.
 *
 * The boss creates a session for the accepted descriptor and hands it to a worker, where it lives
 * until its channels are closed.
 *
 *   service_ops.create (boss) -> session_adopt (worker) -> ... all legs closed -> owner->ended
 *                             \-> session_refuse (any; the hand-off failed)
 *
 * A leg is one channel: echo has one, proxy two. A session ends with one reason, counted at its
 * listener and, after session_count_at(), at its upstream and server.
 */
#ifndef SERVICE_SESSION_H
#define SERVICE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/must.h"
#include "engine/loop.h"
#include "limits/admission.h"
#include "net/address.h"
#include "net/channel.h"
#include "service/service.h"
#include "stats/session_id.h"
#include "stats/session_reason.h"

struct access_log_record;
struct counters;
struct pipeline_template;
struct proxy_protocol;
struct session;
struct spare_pool;

#define SESSION_LEGS 2

/* Time without bytes that ends a draining echo session. */
#define SESSION_QUIET_NS (1 * NS_PER_S)

enum session_counted { SESSION_AT_LISTENER, SESSION_AT_UPSTREAM, SESSION_AT_SERVER };

#define SESSION_COUNTED 3

/* See note: last read in service/session_timer.c. */
struct session_last_read {
    uint64_t bytes_in; /* of the channel, at the last update */
    int64_t last_read_at_ns;
};

/* A worker; ended() is called on its loop, before ${s} is freed. */
struct session_owner {
    struct netloop *net;
    struct spare_pool *spares; /* NULL: no upstream has spares */
    void (*ended)(struct session_owner *owner, struct session *s);
};

/* Operations of a service, on the session's loop unless noted. */
struct service_ops {
    const char *name;
    unsigned descriptors;
    /*
     * Allocate a session; `client_fd` is not set yet. On the boss loop.
     * Errors: 0; -ENOMEM
     */
    int (*create)(struct session **out, const struct service *service);
    /* After adoption: make the client's channel the first leg. */
    void (*open)(struct session *s);
    /* The client is known: begin. */
    void (*start)(struct session *s);
    /* Cancel connecting, if under way. */
    void (*cancel)(struct session *s);
    /* Has the client got all its answers? NULL: unknown. */
    bool (*finished)(const struct session *s);
    /* Name of the server, for logs. NULL: one leg only. */
    const char *(*peer_name)(const struct session *s);
    /* Add the server to the access log record. NULL: one leg only. */
    void (*describe)(const struct session *s, struct access_log_record *r);
    /* First bytes of the relay of relay_tell_first(). NULL: not used. */
    void (*first_byte)(struct session *s);
    /*
     * ${server} is down: leave it if sent there until ${before_ns}; else false. NULL: no servers.
     */
    bool (*evict)(struct session *s, const struct upstream_server *server, int64_t before_ns);
    /* After s->service was replaced: use what it changed. NULL: nothing to do. */
    void (*carry_over)(struct session *s);
    void (*free)(struct session *s);
};

struct session {
    struct list link;
    const struct service *service;
    struct session_owner *owner;
    void *handed_to;                    /* the worker, before adoption */
    struct channel *legs[SESSION_LEGS]; /* [0] the client's; NULL: not open yet */
    unsigned open_legs;
    int client_fd; /* -1 once the client's channel owns it */
    bool preface;  /* a PROXY header is expected */
    bool connecting;
    bool draining;
    bool closing; /* graceful close: bounded by the channels only, see channel_end() */
    bool ending;  /* session_end() was called */
    enum session_reason reason;
    uint32_t access_lines;        /* interval lines in the access log */
    uint64_t number;              /* in the access log; 0: no log */
    const struct address *listen; /* our address; NULL: unknown */
    int64_t began_at_ns;
    int64_t opened_at_ns;            /* when the last leg was opened */
    int64_t expires_at_ns;           /* with jitter; CLOCK_NEVER: none */
    int64_t last_read_updated_at_ns; /* last update of `last_reads` */
    struct session_last_read last_reads[SESSION_LEGS];
    int64_t checked_at_ns;
    struct timer timer;
    struct task task; /* hand-off, then reaping */
    struct address peer;
    struct counters *counted[SESSION_COUNTED]; /* NULL: not counted */
    struct session_id id;                      /* see session_id() */
    struct admission_ticket ticket;
    struct proxy_protocol *proxied;     /* PROXY header; NULL: none */
    struct pipeline_template *pipeline; /* of its handlers, held; NULL: none */
};

/*
 * session_init(s, service):
 * Initialise the common part, and count ${s} at its listener.
 *
 * Thread: any
 */
void session_init(struct session *s, const struct service *service);

/*
 * session_adopt(s, owner):
 * Give ${s} to ${owner} and start it: at once, or after the PROXY header if `preface` is set.
 *
 * Thread: loop of ${owner}
 * Owns:   ${s} frees itself after owner->ended
 */
void session_adopt(struct session *s, struct session_owner *owner);

/*
 * session_admit(s, client):
 * Check the ${client} of a PROXY header with the listener's admission. If refused, end ${s} and
 * return false.
 *
 * Thread: loop of ${s}
 */
bool session_admit(struct session *s, const struct address *client);

/*
 * session_carry_over(s, service):
 * Use the settings of ${service}, the next generation of the same listener: timeouts, linger,
 * bandwidths, limits per client, access log, and for a mirror or PROXY header yet to come.
 *
 * Thread: loop of ${s}
 * Owns:   ${s} has forgotten the old service when this returns
 */
void session_carry_over(struct session *s, const struct service *service);

/*
 * session_refuse(s):
 * Reset the client and free ${s}, which was not adopted; default reason SESSION_ERROR.
 *
 * Thread: any
 */
void session_refuse(struct session *s);

/*
 * session_id(s):
 * The ID of ${s}, created at the first call.
 *
 * Thread: loop of ${s}; any before it was adopted
 */
const struct session_id *session_id(struct session *s);

/*
 * session_key(s):
 * Hash of the client's address without port, for SOURCE_HASH and MAGLEV. Unix clients: of the path,
 * or random without one.
 *
 * Thread: loop of ${s}
 */
uint64_t session_key(struct session *s);

/*
 * session_leg_open(s, leg, ch):
 * Make ${ch} leg number ${leg}; its HANDLER_CLOSED must reach session_leg_ended().
 *
 * Thread: loop of ${s}
 */
void session_leg_open(struct session *s, unsigned leg, struct channel *ch);

/*
 * session_leg_lost(s, leg):
 * ${leg} is closed and will be reconnected; replaces session_leg_ended().
 *
 * Thread: loop of ${s}
 */
void session_leg_lost(struct session *s, unsigned leg);

/*
 * session_leg_ended(s, ch, what, error):
 * Input, output or all of ${ch} has ended: decide the reason, and what the other leg does.
 *
 *   HANDLER_EOF       send end of file to the receiver of its bytes
 *   HANDLER_REJECTED  session_reset()
 *   HANDLER_BROKEN    discard bytes for ${ch}, deliver bytes from it, then end the other leg
 *   HANDLER_CLOSED    after an error: reset the other leg behind the bytes read for it
 *
 * Thread: loop of ${s}
 */
void session_leg_ended(struct session *s, struct channel *ch, enum handler_end what, int error);

/*
 * session_drain(s):
 * End when ops->finished() says so; without it, when a peer closes.
 *
 * Thread: loop of ${s}
 */
void session_drain(struct session *s);

/*
 * session_set_reason(s, reason):
 * Set the reason of the end; the first one stays.
 *
 * Thread: loop of ${s}; any before it was adopted
 */
void session_set_reason(struct session *s, enum session_reason reason);

/*
 * session_close(s, reason):
 * Close gracefully: send buffers, then end of file, within `linger`; discard input. If a handler
 * holds bytes: session_abort().
 *
 * Thread: loop of ${s}
 */
void session_close(struct session *s, enum session_reason reason);

/*
 * session_reset(s, reason):
 * As session_close(), but with a reset instead of end of file.
 *
 * Thread: loop of ${s}
 */
void session_reset(struct session *s, enum session_reason reason);

/*
 * session_abort(s, reason):
 * Reset all legs now.
 *
 * Thread: loop of ${s}
 */
void session_abort(struct session *s, enum session_reason reason);

/*
 * session_held_bytes(s) / session_stalled_since_ns(s) / session_active_at_ns(s):
 * Buffered bytes; earliest last I/O of legs with buffered bytes, or CLOCK_NEVER; last I/O of any
 * leg.
 *
 * Thread: loop of ${s}
 * Units:  bytes; ns
 */
size_t session_held_bytes(const struct session *s);
int64_t session_stalled_since_ns(const struct session *s);
int64_t session_active_at_ns(const struct session *s);

/*
 * session_reclaim(s):
 * Give up optional memory (a mirror) by the end of the turn; return its size.
 *
 * Thread: loop of ${s}
 * Units:  bytes
 */
size_t session_reclaim(struct session *s);

/*
 * session_count_at(s, where, c):
 * Count ${s} at ${c} too, until its end.
 *
 * Thread: loop of ${s}; any before it was adopted
 * Owns:   ${c} must outlive ${s}
 */
void session_count_at(struct session *s, enum session_counted where, struct counters *c);

/*
 * session_count_off(s, where, reason):
 * Stop counting ${s} there, if it is counted, with ${reason} and no bytes.
 *
 * Thread: loop of ${s}
 */
void session_count_off(struct session *s, enum session_counted where, enum session_reason reason);

#endif
