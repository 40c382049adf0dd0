/*
 * service/session: one client's stay: its channels, its timer, and how it ends.
 *
 * A session is made by the boss with the accepted descriptor, handed to a worker, and lives there
 * until all its channels are closed. Everything that belongs to the connection hangs off it, and
 * only through the netloop it was adopted by do its parts know their loop.
 *
 *   service_ops.create (boss) -> session_adopt (worker) -> ... all legs closed -> owner->ended,
 *   freed
 *                             \-> session_refuse (any; the hand-off failed)
 *
 * A leg is one channel: an echo session has one, a proxied one two. One lazily re-armed timer
 * serves every timeout: no timer operation per byte (service/session_timer).
 *
 * A session that ends has one reason and is counted by it: at its listener, and at its upstream and
 * server if session_count_at() said so.
 */
#ifndef SERVICE_SESSION_H
#define SERVICE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/must.h"
#include "engine/loop.h"
#include "net/address.h"
#include "net/channel.h"
#include "limits/admission.h"
#include "service/service.h"
#include "stats/session_id.h"
#include "stats/session_reason.h"

struct access_log_record;
struct counters;
struct proxy_protocol;
struct session;
struct spare_pool;

#define SESSION_LEGS 2

/* How long nothing may move before a draining echo session counts as finished. */
#define SESSION_QUIET_NS (1 * NS_PER_S)

/* Where a session is counted. */
enum session_counted { SESSION_AT_LISTENER, SESSION_AT_UPSTREAM, SESSION_AT_SERVER };

#define SESSION_COUNTED 3

/* What a leg said last, as far as the timer knows: see note: ears in service/session_timer.c. */
struct session_ear {
    uint64_t bytes_in; /* of the channel, at the last look */
    int64_t heard_at_ns;
};

/* Who runs sessions: told on its loop when one has ended and is about to be freed. */
struct session_owner {
    struct netloop *net;
    struct spare_pool *spares; /* NULL: no upstream keeps any */
    void (*ended)(struct session_owner *owner, struct session *s);
};

/* What a kind of session adds. */
struct service_ops {
    const char *name;
    unsigned descriptors; /* that a session takes */
    /*
     * Memory for a session of ${service}. Called by the boss. The session's `client_fd` is not set
     * yet.
     * Errors: 0; -ENOMEM
     */
    int (*create)(struct session **out, const struct service *service);
    /*
     * Adopted: make the client's channel the first leg, with its pipeline. On the session's loop.
     */
    void (*open)(struct session *s);
    /*
     * It is known who the client is: begin, and read it when its bytes can be taken. On the
     * session's loop.
     */
    void (*start)(struct session *s);
    /* End a connection that is being made, if there is one. On the session's loop. */
    void (*cancel)(struct session *s);
    /* Has the client got the answer to all that came from it? NULL: only the peers know. */
    bool (*finished)(const struct session *s);
    /* Whom the second leg leads to, for logs. NULL: there is no second leg. */
    const char *(*peer_name)(const struct session *s);
    /* Add what the log can say of the second leg. NULL: there is no second leg. */
    void (*describe)(const struct session *s, struct access_log_record *r);
    /*
     * The first bytes came through the relay that relay_tell_first() was called for. NULL: it never
     * is. On its loop.
     */
    void (*first_byte)(struct session *s);
    /*
     * ${server} is down: end there, if it was sent there until ${before_ns}, or say false. NULL: it
     * never is. On its loop.
     */
    bool (*evict)(struct session *s, const struct upstream_server *server, int64_t before_ns);
    /* Free the memory that create() took. */
    void (*free)(struct session *s);
};

struct session {
    struct list link; /* on the owner's list */
    const struct service *service;
    struct session_owner *owner;        /* NULL: not adopted yet */
    void *handed_to;                    /* until then: for whoever handles the hand-over */
    struct channel *legs[SESSION_LEGS]; /* [0] the client's; NULL: not there (yet) */
    unsigned open_legs;
    int client_fd;   /* until the client's channel has it; -1 then */
    bool preface;    /* a proxy is yet to say who the client is: see service/session_preface.h */
    bool connecting; /* the second leg is on its way */
    bool draining;
    bool closing; /* we end it: only the bounds of its channels count, see channel_end() */
    bool ending;  /* session_end() was called */
    enum session_reason reason;
    uint32_t access_lines;        /* that were due before its end */
    uint64_t number;              /* in the access log; 0: there is none */
    const struct address *listen; /* where the client came to; NULL: not known */
    int64_t began_at_ns;
    int64_t opened_at_ns;   /* when the last of its legs was there */
    int64_t expires_at_ns;  /* max_lifetime, drawn; CLOCK_NEVER: none */
    int64_t listened_at_ns; /* when the timer last looked at the ears */
    struct session_ear ears[SESSION_LEGS];
    int64_t checked_at_ns; /* when the timer last looked without ending anything */
    struct timer timer;
    struct task task; /* the hand-off, then the reaping */
    struct address peer;
    struct counters *counted[SESSION_COUNTED]; /* where; NULL: nowhere */
    struct session_id id;                      /* see session_id() */
    struct admission_ticket ticket;            /* given back when the session is freed */
    struct proxy_protocol *proxied;            /* how it was opened, if by a proxy */
};

/*
 * session_init(s, service):
 * The part all kinds share; for service_ops.create. From here on the session is counted at its
 * listener.
 *
 * Thread: any
 */
void session_init(struct session *s, const struct service *service);

/*
 * session_adopt(s, owner):
 * Make ${s} the owner's, and start it: at once, or if it is `opening` as soon as its client is
 * known.
 *
 * Thread: loop of ${owner}
 * Owns:   ${s} frees itself after owner->ended
 */
void session_adopt(struct session *s, struct session_owner *owner);

/*
 * session_admit(s, client):
 * Ask the listener's admission about ${client}, once the address that stands for it is known on the
 * worker; if the boss has asked already ${s} has its ticket. False when the client is not served:
 * ${s} ends then, with the reason.
 *
 * Thread: loop of ${s}
 */
bool session_admit(struct session *s, const struct address *client);

/*
 * session_refuse(s):
 * Break the client's connection visibly (reset) and free ${s}, which nobody adopted. Its reason is
 * an error if it has none.
 *
 * Thread: any
 */
void session_refuse(struct session *s);

/*
 * session_id(s):
 * The ID of ${s}, which it gets when it is first asked for.
 *
 * Thread: loop of ${s}; any before it was adopted
 * Owns:   nothing; it lives as long as ${s}
 */
const struct session_id *session_id(struct session *s);

/*
 * session_key(s):
 * Hash of the client's address, for SOURCE_HASH and MAGLEV: clients of one host have one key. For a
 * unix client it is the hash of the path of its socket, or random for each session without a path.
 *
 * Thread: loop of ${s}
 */
uint64_t session_key(struct session *s);

/*
 * session_leg_open(s, leg, ch):
 * ${ch} is leg number ${leg} from now on, and session_leg_closed() will be called for it.
 *
 * Thread: loop of ${s}
 */
void session_leg_open(struct session *s, unsigned leg, struct channel *ch);

/*
 * session_leg_lost(s, leg):
 * The channel of that leg is closed, and another will take its place: ${s} is connecting again.
 * Called in place of session_leg_closed().
 *
 * Thread: loop of ${s}
 */
void session_leg_lost(struct session *s, unsigned leg);

/*
 * session_leg_half_closed(s, ch) / session_leg_broken(s, ch, error) / session_leg_closed(s, ch,
 * error): A channel's eof, broken or closed event.
 *
 * Broken: what the other leg still sends is lost and discarded; what ${ch} still sends is delivered
 * to it, then the session ends. Closed after an error: a reset is passed on as a reset, behind what
 * was read for the other leg.
 *
 * Thread: loop of ${s}
 */
void session_leg_half_closed(struct session *s, struct channel *ch);
void session_leg_broken(struct session *s, struct channel *ch, int error);
void session_leg_closed(struct session *s, struct channel *ch, int error);

/*
 * session_drain(s):
 * End when finished, if the service can tell; else go on until an end closes.
 *
 * Thread: loop of ${s}
 */
void session_drain(struct session *s);

/*
 * session_set_reason(s, reason):
 * Why ${s} ends, or will. The first reason stands.
 *
 * Thread: loop of ${s}; any before it was adopted
 */
void session_set_reason(struct session *s, enum session_reason reason);

/*
 * session_close(s, reason):
 * End in good order: what waits is sent, then end of file, and what still comes is discarded. How
 * long a peer may take for that is the service's `linger`.
 *
 * Thread: loop of ${s}
 */
void session_close(struct session *s, enum session_reason reason);

/*
 * session_reset(s, reason):
 * End visibly, but without loss of what was read before: each peer gets what waits for it, and then
 * a reset. What still comes is discarded. A peer may take as long as with session_close().
 *
 * Thread: loop of ${s}
 */
void session_reset(struct session *s, enum session_reason reason);

/*
 * session_abort(s, reason):
 * End now and visibly.
 *
 * Thread: loop of ${s}
 */
void session_abort(struct session *s, enum session_reason reason);

/*
 * session_held_bytes(s) / session_moved_at_ns(s) / session_active_at_ns(s):
 * How much memory holds bytes that its peers have not taken, and when anything moved on a leg of
 * which that is so, or CLOCK_NEVER; when anything moved on any of its legs.
 *
 * Thread: loop of ${s}
 * Units:  bytes; ns
 */
size_t session_held_bytes(const struct session *s);
int64_t session_moved_at_ns(const struct session *s);
int64_t session_active_at_ns(const struct session *s);

/*
 * session_reclaim(s):
 * Memory is scarce: give up what ${s} can do without. How much that was; the end of the turn frees
 * it.
 *
 * Thread: loop of ${s}
 * Units:  bytes
 */
size_t session_reclaim(struct session *s);

/*
 * session_count_at(s, where, c):
 * ${s} is also counted at ${c}, from now until it ends with its reason and its bytes.
 *
 * Thread: loop of ${s}; any before it was adopted
 * Owns:   nothing; ${c} must outlive ${s}
 */
void session_count_at(struct session *s, enum session_counted where, struct counters *c);

/*
 * session_count_off(s, where, reason):
 * ${s} has left the upstream or server that it was counted at, for ${reason} and with nothing
 * moved. Does nothing if it was not counted there.
 *
 * Thread: loop of ${s}
 */
void session_count_off(struct session *s, enum session_counted where, enum session_reason reason);

#endif
