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
struct session_facts;
struct session_header;
struct session_hello;
struct session_place;
struct session_preface;
struct session_state;
struct session_tls;
struct session_spares;
struct upstream_server;

#define SESSION_LEGS 2

/* A draining echo session ends after this time without bytes. */
#define SESSION_QUIET_NS (1 * NS_PER_S)

enum session_counted { SESSION_AT_LISTENER, SESSION_AT_UPSTREAM, SESSION_AT_SERVER };

#define SESSION_COUNTED 3

/* Stages of the preface, in order; see service/session_preface.h. */
enum session_preface_part {
    SESSION_PREFACE_HEADER,
    SESSION_PREFACE_POSTGRES,
    SESSION_PREFACE_FIRST,
    SESSION_PREFACE_HELLO,
    SESSION_PREFACE_TLS
};

/*
 * Phases of a session, in order; session_enter() says what may follow what. See the table in
 * DESIGN.md.
 */
enum session_phase {
    SESSION_PHASE_PREFACE,    /* until its preface, if any, is complete */
    SESSION_PHASE_CONNECTING, /* no server is linked */
    SESSION_PHASE_OPEN,
    SESSION_PHASE_CLOSING, /* we end it: only the timeouts of channel_end() apply */
    SESSION_PHASE_ENDING   /* all legs are closed: it is about to be freed */
};

/* Does another process serve the session? See service/session_handover.h. */
enum session_gone {
    SESSION_GONE_NOT,
    SESSION_GONE_TAKEN, /* this process has handed it over */
    SESSION_GONE_UNDONE /* this process did not take it */
};

/* Last read of a leg; see note: last read in service/session_timer.c. */
struct session_last_read {
    uint64_t bytes_in; /* the channel's count at the last update */
    int64_t last_read_at_ns;
};

/* The worker of a session; ended() is called on its loop, before ${s} is freed. */
struct session_owner {
    struct netloop *net;
    struct session_spares *spares; /* NULL: no spare connections are kept */
    void (*ended)(struct session_owner *owner, struct session *s);
};

/*
 * Operations of a service, called on the session's loop unless noted. Those marked "proxy" are NULL
 * in echo, which has no servers.
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
    /* The preface, if any, is complete: begin to serve the client. */
    void (*start)(struct session *s);
    /* proxy, before start(): choose ${up} as the upstream of ${s}. */
    void (*route)(struct session *s, struct upstream *up);
    /* proxy: timeout of a server that sends nothing; 0: no timeout. */
    int64_t (*server_idle_timeout_ns)(const struct session *s);
    /* proxy: timeout of a client that does not close after its server's end of file; 0: none. */
    int64_t (*server_closed_timeout_ns)(const struct session *s);
    /* proxy: stop connecting: the connect, wait in the queue, pause or TLS handshake. */
    void (*cancel)(struct session *s);
    /* Has the client acknowledged all answers? NULL: unknown. */
    bool (*finished)(const struct session *s);
    /* proxy: name of the server, for logs; returns NULL without a server. */
    const char *(*peer_name)(const struct session *s);
    /* proxy: add the server to the access log record. */
    void (*describe)(const struct session *s, struct access_log_record *r);
    /* proxy: the first bytes of ${from} were read; see relay_tell_first(). */
    void (*first_byte)(struct session *s, const struct channel *from);
    /*
     * proxy: ${server} is down, or not in use any more. If ${s} chose ${server} at ${before_ns} or
     * earlier, reconnect ${s}, or abort it for ${reason}, and return true.
     */
    bool (*evict)(struct session *s, const struct upstream_server *server, int64_t before_ns,
                  enum session_reason reason);
    /* s->service was replaced: use the new settings. NULL: nothing to do. */
    void (*carry_over)(struct session *s);
    /* proxy: is TLS with the server used, or begun? */
    bool (*has_tls)(const struct session *s);
    /* These are for service/session_handover; ${st} is as of its functions. Add what it knows. */
    void (*save)(const struct session *s, struct session_state *st);
    /* proxy: set upstream and server, on any thread. */
    void (*place)(struct session *s, const struct session_place *place,
                  const struct session_state *st);
    /* proxy: make the server's channel of ${fd}, and link both. */
    void (*restore)(struct session *s, const struct session_state *st, int fd);
    /* Limit the bandwidth, as it was limited before. Errors: 0; -ENOMEM */
    int (*limit)(struct session *s, const struct session_state *st);
    /* proxy: as session_is_stranded(). */
    bool (*is_stranded)(const struct session *s);
    void (*free)(struct session *s);
};

struct session {
    struct list link;
    const struct service *service;
    struct session_owner *owner;
    void *handed_to;                    /* its worker, set before adoption */
    struct channel *legs[SESSION_LEGS]; /* [0]: the client's, [1]: the server's; NULL: not open */
    int client_fd;                      /* -1 once the client's channel owns it */
    uint32_t access_lines; /* access log: intervals from the session's start to its last line */
    uint8_t open_legs;
    uint8_t preface; /* unfinished stages of the preface, bits 1 << enum session_preface_part */
    bool draining;
    bool leaving; /* session_leave_by() was called */
    enum session_phase phase : 8;
    enum session_reason reason : 8;
    bool has_facts : 1;     /* see `logged` */
    bool has_open_line : 1; /* the access log has its line at connect */
    unsigned gone : 2;      /* enum session_gone */
    unsigned kept : 4;      /* enum session_stay: a new process refused it; 0: none has */
    union {
        uint64_t number;             /* in the access log; 0: not logged */
        struct session_facts *facts; /* has the number, and more; see session_facts.h */
    } logged;
    uint64_t order;               /* ascending number, given by its worker */
    const struct address *listen; /* listen address; NULL: unknown */
    int64_t began_at_ns;
    int64_t opened_at_ns;  /* when the newest leg was opened, or the preface ended */
    int64_t expires_at_ns; /* end of its lifetime; CLOCK_NEVER: unlimited */
    int64_t last_read_updated_at_ns;
    struct session_last_read last_reads[SESSION_LEGS];
    int64_t checked_at_ns;
    struct timer timer;
    struct task task; /* hand-off, then reaping */
    struct address peer;
    struct counters *counted[SESSION_COUNTED]; /* NULL: not counted */
    uint64_t counted_in, counted_out;          /* client's bytes already added to `counted` */
    struct session_id id;
    struct admission_ticket ticket;
    struct session_preface *preface_read; /* NULL: no preface */
    struct session_header *header;        /* its PROXY header; NULL: none */
    struct session_tls *tls;              /* TLS with the client; NULL: none */
    struct session_hello *hello;          /* its ClientHello, read for routes; NULL: none */
    struct pipeline_template *pipeline;   /* a reference; NULL: no handlers */
};

/* session_facts_of(s): values for the access log; NULL: it asks for none. Thread: loop of ${s} */
static inline struct session_facts *session_facts_of(const struct session *s)
{
    return s->has_facts ? s->logged.facts : NULL;
}

/* session_init(s, service): initialize ${s}, and count it at its listener. */
void session_init(struct session *s, const struct service *service);

/*
 * session_adopt(s, owner):
 * Serve ${s}, after its preface if it has one.
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

/* session_offend(s, offence): count an offence of the client. Thread: loop of ${s} */
void session_offend(struct session *s, enum ban_offence offence);

/*
 * session_carry_over(s, service):
 * Make ${s} use ${service}, the next generation of the same listener. Its handlers keep their
 * settings, and so does a TLS handshake or mirror that has begun.
 *
 * Thread: loop of ${s}
 * Owns:   ${s} no longer uses the old service
 */
void session_carry_over(struct session *s, const struct service *service);

/*
 * session_refuse(s):
 * Reset the client and free ${s}, which was not adopted. The reason is SESSION_ERROR, unless
 * another was set.
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
 * Hash of the client's address without port. For a unix client: hash of
 * its path, else a random number.
 *
 * Thread: loop of ${s}
 */
uint64_t session_key(struct session *s);

/*
 * session_leg_open(s, leg, ch):
 * Make ${ch} leg number ${leg}; with the server's, ${s} is open. The HANDLER_CLOSED of ${ch} must
 * reach session_leg_ended().
 *
 * Thread: loop of ${s}
 */
void session_leg_open(struct session *s, unsigned leg, struct channel *ch);

/*
 * session_leg_lost(s, leg):
 * Remove leg ${leg}, which is closed and will be reconnected. Call this instead of
 * session_leg_ended().
 *
 * Thread: loop of ${s}
 */
void session_leg_lost(struct session *s, unsigned leg);

/*
 * session_leg_ended(s, ch, what, error):
 * Handle an end of ${ch}: set the reason, and act:
 *
 *   HANDLER_EOF       send end of file to the receiver of the bytes of ${ch}
 *   HANDLER_REJECTED  session_reset(); if TLS failed, the leg sends its alert and end of file
 *   HANDLER_BROKEN    deliver the input of ${ch}, then end the other leg; abort an echo
 *   HANDLER_CLOSED    after an error: send the other leg the bytes read for it, then reset that
 *                     leg
 *
 * Thread: loop of ${s}
 */
void session_leg_ended(struct session *s, struct channel *ch, enum handler_end what, int error);

/* session_leg_closing(s, ch): ask the kernel for what the access log says of ${ch}. Thread: loop */
void session_leg_closing(struct session *s, struct channel *ch);

/*
 * session_drain(s):
 * End ${s} once ops->finished() is true after SESSION_QUIET_NS without bytes. A service without
 * finished() goes on until a peer closes.
 *
 * Thread: loop of ${s}
 */
void session_drain(struct session *s);

/*
 * session_leave_by(s, at_ns):
 * Time ${s} out at ${at_ns} at the latest, with reason SESSION_DRAIN.
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
 * Close gracefully: send buffered bytes, then end of file, within `linger`; discard input. If a
 * handler holds input, abort instead.
 *
 * Thread: loop of ${s}
 */
void session_close(struct session *s, enum session_reason reason);

/*
 * session_reset(s, reason):
 * Send buffered bytes within `linger`, then reset all legs; discard input.
 *
 * Thread: loop of ${s}
 */
void session_reset(struct session *s, enum session_reason reason);

/*
 * session_count_bytes(s):
 * Count the client's bytes since the last call, if ${s} is connected. Its end counts the rest.
 *
 * Thread: loop of ${s}
 */
void session_count_bytes(struct session *s);

/* session_abort(s, reason): stop connecting, and reset all legs now. Thread: loop of ${s} */
void session_abort(struct session *s, enum session_reason reason);

/*
 * session_held_bytes(s) / session_stalled_since_ns(s) / session_active_at_ns(s) /
 * session_load_us(s, now_ns) / session_moved_ns(s, now_ns) / session_set_moved(s, now_ns):
 * Memory that holds bytes / earliest last I/O of the legs with such memory, CLOCK_NEVER if none /
 * latest I/O of any leg / microseconds of the loop's time in the last whole second, if measured /
 * time since session_set_moved(), CLOCK_NEVER: not called / note that ${s} moves for its load.
 *
 * Thread: loop of ${s}
 */
size_t session_held_bytes(const struct session *s);
int64_t session_stalled_since_ns(const struct session *s);
int64_t session_active_at_ns(const struct session *s);
unsigned session_load_us(const struct session *s, int64_t now_ns);
int64_t session_moved_ns(const struct session *s, int64_t now_ns);
void session_set_moved(struct session *s, int64_t now_ns);

/*
 * session_reclaim(s):
 * Free optional memory (buffers of a mirror) by the end of the turn; return its size.
 *
 * Thread: loop of ${s}
 */
size_t session_reclaim(struct session *s);

/*
 * session_count_at(s, where, c):
 * Count ${s} in ${c} too, from now to its end.
 *
 * Thread: loop of ${s}, or any before session_adopt()
 * Owns:   ${c} must outlive ${s}
 */
void session_count_at(struct session *s, enum session_counted where, struct counters *c);

/*
 * session_count_off(s, where, reason):
 * If ${s} is counted at ${where}, count its end there now, with ${reason} and no bytes.
 *
 * Thread: loop of ${s}
 */
void session_count_off(struct session *s, enum session_counted where, enum session_reason reason);

#endif
