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
struct session;
struct session_header;
struct session_hello;
struct session_preface;
struct session_tls;
struct spare_pool;

#define SESSION_LEGS 2

/* A draining echo session ends after so long without bytes. */
#define SESSION_QUIET_NS (1 * NS_PER_S)

enum session_counted { SESSION_AT_LISTENER, SESSION_AT_UPSTREAM, SESSION_AT_SERVER };

#define SESSION_COUNTED 3

/* In order; see service/session_preface.h. */
enum session_preface_part {
    SESSION_PREFACE_HEADER,
    SESSION_PREFACE_POSTGRES,
    SESSION_PREFACE_HELLO,
    SESSION_PREFACE_TLS
};

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

/*
 * Operations of a service, on the session's loop unless noted. A service without servers (echo)
 * leaves some NULL.
 */
struct service_ops {
    const char *name;
    unsigned descriptors;
    /*
     * On the boss loop: allocate a session; `client_fd` is not set yet.
     * Errors: 0; -ENOMEM
     */
    int (*create)(struct session **out, const struct service *service);
    /* After adoption: make the client's channel the first leg. */
    void (*open)(struct session *s);
    /* The client is known, its preface read: begin to serve it. */
    void (*start)(struct session *s);
    /* Before start(): choose ${up} as the upstream of ${s}. NULL: no servers. */
    void (*route)(struct session *s, struct upstream *up);
    /* Timeout of a server that sends nothing; 0: none. NULL: no servers. */
    int64_t (*server_idle_timeout_ns)(const struct session *s);
    /* Stop connecting, if under way: also leave the wait queue, end a pause or TLS handshake. */
    void (*cancel)(struct session *s);
    /* Has the client got all its answers? NULL: unknown. */
    bool (*finished)(const struct session *s);
    /* Name of the server, for logs. NULL: no servers. */
    const char *(*peer_name)(const struct session *s);
    /* Add the server to the access log record. NULL: no servers. */
    void (*describe)(const struct session *s, struct access_log_record *r);
    /* The relay of relay_tell_first() has read its first bytes. NULL: not used. */
    void (*first_byte)(struct session *s);
    /*
     * ${server} is down: if ${s} was sent to ${server} by ${before_ns}, leave ${server} and return
     * true. NULL: no servers.
     */
    bool (*evict)(struct session *s, const struct upstream_server *server, int64_t before_ns);
    /* s->service was replaced: use its settings. NULL: nothing to do. */
    void (*carry_over)(struct session *s);
    void (*free)(struct session *s);
};

struct session {
    struct list link;
    const struct service *service;
    struct session_owner *owner;
    void *handed_to;                    /* the worker, before adoption */
    struct channel *legs[SESSION_LEGS]; /* [0]: the client's, [1]: the server's; NULL: not open */
    int client_fd;                      /* -1 once the client's channel owns it */
    uint8_t open_legs;
    uint8_t preface; /* stages of the preface that are not done: 1 << enum session_preface_part */
    bool connecting;
    bool draining;
    bool leaving; /* session_leave_by() was called */
    bool closing; /* graceful close: only the timeouts of channel_end() apply */
    bool ending;  /* session_end() was called */
    enum session_reason reason;
    uint64_t number;              /* in the access log; 0: not logged */
    uint64_t order;               /* among the sessions of its worker */
    const struct address *listen; /* listen address; NULL: unknown */
    int64_t began_at_ns;
    int64_t opened_at_ns;  /* when the last leg was opened */
    int64_t expires_at_ns; /* end of its lifetime; CLOCK_NEVER: unlimited */
    int64_t last_read_updated_at_ns;
    struct session_last_read last_reads[SESSION_LEGS];
    int64_t checked_at_ns;
    struct timer timer;
    struct task task; /* hand-off, then reaping */
    struct address peer;
    uint32_t access_lines; /* access log: whole intervals until the last interval line */
    struct counters *counted[SESSION_COUNTED]; /* NULL: not counted */
    uint64_t counted_in, counted_out;          /* client's bytes already in `counted` */
    struct session_id id;
    struct admission_ticket ticket;
    struct session_preface *preface_read; /* NULL: none */
    struct session_header *header;        /* its PROXY header; NULL: none */
    struct session_tls *tls;              /* TLS with the client; NULL: none */
    struct session_hello *hello;          /* its ClientHello, if passed on; NULL: none */
    struct pipeline_template *pipeline;   /* a reference; NULL: no handlers */
};

/*
 * session_init(s, service):
 * Initialize, and count ${s} at its listener.
 *
 * Thread: any
 */
void session_init(struct session *s, const struct service *service);

/*
 * session_adopt(s, owner):
 * Start ${s}: at once, or after its preface.
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
 * Use the settings of ${service}, the next generation of the same listener; a PROXY header or
 * mirror that has begun keeps its settings.
 *
 * Thread: loop of ${s}
 * Owns:   ${s} no longer uses the old service
 */
void session_carry_over(struct session *s, const struct service *service);

/*
 * session_refuse(s):
 * Reset the client and free ${s}, which was not adopted. The reason is SESSION_ERROR, unless one
 * was set.
 *
 * Thread: any
 */
void session_refuse(struct session *s);

/*
 * session_id(s):
 * The ID of ${s}, created at the first call.
 *
 * Thread: loop of ${s}, or any before session_adopt()
 */
const struct session_id *session_id(struct session *s);

/*
 * session_key(s):
 * Hash of the client's address without port, for SOURCE_HASH and MAGLEV. A unix client: hash of its
 * path, or random without path.
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
 * Leg ${leg} is closed and will be reconnected. Call this instead of session_leg_ended().
 *
 * Thread: loop of ${s}
 */
void session_leg_lost(struct session *s, unsigned leg);

/*
 * session_leg_ended(s, ch, what, error):
 * Input, output or all of ${ch} has ended: set the reason, and act:
 *
 *   HANDLER_EOF       send end of file to the receiver of the bytes of ${ch}
 *   HANDLER_REJECTED  session_reset()
 *   HANDLER_BROKEN    discard bytes for ${ch}, deliver its input, then end the other leg
 *   HANDLER_CLOSED    after an error: send the other leg the bytes read for it, then reset that leg
 *
 * Thread: loop of ${s}
 */
void session_leg_ended(struct session *s, struct channel *ch, enum handler_end what, int error);

/*
 * session_drain(s):
 * End ${s} once ops->finished() is true. If the service has no finished(), wait until a peer
 * closes.
 *
 * Thread: loop of ${s}
 */
void session_drain(struct session *s);

/*
 * session_leave_by(s, at_ns):
 * End ${s} at ${at_ns} at the latest, as a timeout does, with reason SESSION_DRAIN.
 *
 * Thread: loop of ${s}
 */
void session_leave_by(struct session *s, int64_t at_ns);

/*
 * session_set_reason(s, reason):
 * Set the reason of the end; the first one stays.
 *
 * Thread: loop of ${s}, or any before session_adopt()
 */
void session_set_reason(struct session *s, enum session_reason reason);

/*
 * session_close(s, reason):
 * Close gracefully: send buffers, then end of file, within `linger`; discard input. If a handler
 * holds input, abort instead.
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
 * session_count_bytes(s):
 * Count the bytes that a connected ${s} has passed on so far, without waiting for its end.
 *
 * Thread: loop of ${s}
 */
void session_count_bytes(struct session *s);

/*
 * session_abort(s, reason):
 * Reset all legs now.
 *
 * Thread: loop of ${s}
 */
void session_abort(struct session *s, enum session_reason reason);

/*
 * session_held_bytes(s) / session_stalled_since_ns(s) / session_active_at_ns(s):
 * Bytes buffered / since when a leg with buffered bytes has had no I/O, or CLOCK_NEVER / time of
 * the last I/O of any leg.
 *
 * Thread: loop of ${s}
 */
size_t session_held_bytes(const struct session *s);
int64_t session_stalled_since_ns(const struct session *s);
int64_t session_active_at_ns(const struct session *s);

/*
 * session_reclaim(s):
 * Give up optional memory (a mirror) by the end of the turn; return its size.
 *
 * Thread: loop of ${s}
 */
size_t session_reclaim(struct session *s);

/*
 * session_count_at(s, where, c):
 * Count ${s} at ${c} too, until its end.
 *
 * Thread: loop of ${s}, or any before session_adopt()
 * Owns:   ${c} must outlive ${s}
 */
void session_count_at(struct session *s, enum session_counted where, struct counters *c);

/*
 * session_count_off(s, where, reason):
 * If ${s} is counted at ${where}, count its end there, with ${reason} and no bytes.
 *
 * Thread: loop of ${s}
 */
void session_count_off(struct session *s, enum session_counted where, enum session_reason reason);

#endif
