/*
 * balance/endpoint: an address to connect to, its session count and flags, used by all workers.
 * Atomics are relaxed unless said otherwise.
 */
#ifndef BALANCE_ENDPOINT_H
#define BALANCE_ENDPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "balance/response_time.h"
#include "base/ref.h"
#include "base/cache_line.h"
#include "base/must.h"
#include "engine/lock.h"
#include "net/address.h"

struct loop_group;

/* Flags: bits above the session count in the load word. */
enum endpoint_flag {
    ENDPOINT_DOWN = 1 << 24,     /* health checks fail */
    ENDPOINT_EJECTED = 1 << 25,  /* sessions failed in a row */
    ENDPOINT_ABSENT = 1 << 26,   /* address unknown, or removed from the set */
    ENDPOINT_WARMING = 1 << 27,  /* slow start */
    ENDPOINT_SAID_DOWN = 1 << 28 /* by its agent */
};

#define ENDPOINT_COUNT_MASK 0xffffffu

#define ENDPOINT_ANY_DOWN (ENDPOINT_DOWN | ENDPOINT_SAID_DOWN)

/* An endpoint with one of these flags is not picked; in panic only ENDPOINT_ABSENT counts. */
#define ENDPOINT_UNFIT (ENDPOINT_ANY_DOWN | ENDPOINT_EJECTED | ENDPOINT_ABSENT)

#define ENDPOINT_ADDRESSES  16
#define ENDPOINT_WHY_BYTES  400
#define ENDPOINT_SAID_BYTES 128

/* Addresses in the order to try; immutable once published. */
struct endpoint_addresses {
    /*
     * note: users. References by the endpoint and by connecting sessions; the last release frees. A
     * session reads the pointer, then adds a reference. So the endpoint's reference to a replaced
     * list is dropped only after a grace period (engine/grace), when no worker is between these
     * steps.
     */
    struct ref references;
    unsigned n;
    struct address list[];
};

struct endpoint_group {
    _Atomic uint32_t load; /* sessions at all endpoints of the group */
    char apart[CACHE_LINE_BYTES - sizeof(uint32_t)];
    /* Number of flag changes; see note: flags. Seldom written. */
    _Atomic uint32_t changes;
    /* Called when a flag or address changed, on the thread that changed it; may be NULL. */
    void (*changed)(struct endpoint_group *g);

    struct lock lock;        /* see note: in use in balance/balancer_in_use.c */
    _Atomic uint32_t in_use; /* `in_use` of the endpoints in use; 0: none so far */
    atomic_bool is_settled;  /* the choice holds: no better endpoint replaces it */
    unsigned level;          /* of the endpoints in use; under the lock */
    _Atomic uint64_t
        n_moves; /* times that other endpoints came into use in place of those before */
};

struct endpoint {
    const char *name;
    _Atomic(struct endpoint_addresses *) addresses; /* NULL: unresolved; see note: users */
    atomic_uint weight;          /* 0: no sessions; a change needs a new balancer */
    atomic_uint max_connections; /* 0: unlimited */
    atomic_uint level;           /* priority, 0 first; a change needs a new balancer */
    uint64_t hash;               /* hash of the name, equal after a restart */
    uint64_t address_hash;       /* hash of the address, equal in all processes that use it */

    /*
     * note: flags. A flag change and the following increment of `changes` are releases: a thread
     * that sees the new count sees the flag, and for ENDPOINT_WARMING its start time. So totals are
     * computed once per change.
     *
     * note: load. The load word has flags and session count, including connecting sessions. A
     * group's words are adjacent, for fast searches.
     */
    _Atomic uint32_t *load;
    struct endpoint_group *group;
    _Atomic int64_t warming_since_ns; /* written before ENDPOINT_WARMING is set */
    atomic_bool is_checked;           /* a check has found whether it is up */
    _Atomic int64_t checked_at_ns;    /* when the last check ended; 0: none has */
    _Atomic int64_t check_ns;         /* how long it took; less than 0: it failed */
    _Atomic uint32_t in_use;          /* as that of the group: in use */

    _Atomic uint64_t downs;         /* times it became unfit, without waiting for a first check */
    _Atomic int64_t changed_at_ns;  /* of the last time it became fit or unfit, or was disabled */
    struct lock why_lock;           /* for `why` and `said` */
    char said[ENDPOINT_SAID_BYTES]; /* what its agent answered last */
    char why[ENDPOINT_WHY_BYTES];   /* what the last failed check found */
    struct response_time times;     /* measured with BALANCER_LEAST_TIME */
};

/*
 * endpoint_load(e) / endpoint_active(e) / endpoint_is_used(e):
 * Load word (note: load) / its session count / is the weight above 0?
 */
static inline uint32_t endpoint_load(const struct endpoint *e)
{
    return atomic_load_explicit(e->load, memory_order_relaxed);
}

static inline uint32_t endpoint_active(const struct endpoint *e)
{
    return endpoint_load(e) & ENDPOINT_COUNT_MASK;
}

static inline bool endpoint_is_used(const struct endpoint *e)
{
    return atomic_load_explicit(&e->weight, memory_order_relaxed) > 0;
}

/*
 * endpoint_is_in_use(e) / endpoint_put_in_use(e, alone):
 * Is ${e} in use, fit or not? / put ${e} in use, ${alone} or beside those that are: of several
 * levels balancer_settle() chooses the lowest, and adds the others of it.
 */
static inline bool endpoint_is_in_use(const struct endpoint *e)
{
    uint32_t in_use = atomic_load_explicit(&e->in_use, memory_order_relaxed);

    return in_use > 0 && in_use == atomic_load_explicit(&e->group->in_use, memory_order_relaxed);
}

void endpoint_put_in_use(struct endpoint *e, bool alone);

/*
 * endpoint_enter(e) / endpoint_count(e) / endpoint_leave(e):
 * Add a session, unless the endpoint is full / add one of another process, even if it is full /
 * remove a session.
 *
 * Errors: 0; -EBUSY (max_connections)
 */
int endpoint_enter(struct endpoint *e) NODISCARD;
void endpoint_count(struct endpoint *e);
void endpoint_leave(struct endpoint *e);

/*
 * endpoint_hold_addresses(e) / endpoint_release_addresses(at):
 * Add a reference to the addresses and return them, NULL if unresolved / release the reference
 * (NULL is allowed).
 *
 * Thread: a loop of ${readers}, or the thread of endpoint_set_addresses() / any
 */
struct endpoint_addresses *endpoint_hold_addresses(const struct endpoint *e);
void endpoint_release_addresses(struct endpoint_addresses *at);

/*
 * endpoint_addresses_are(at, list, n):
 * Are the addresses of ${at} those of ${list}, in any order?
 */
bool endpoint_addresses_are(const struct endpoint_addresses *at, const struct address *list,
                            unsigned n);

/*
 * endpoint_set_addresses(e, readers, list, n):
 * Replace the addresses by the ${n} > 0 in ${list}, and clear ENDPOINT_ABSENT. The same addresses
 * in another order are no change. ${readers}: loops that may be reading; NULL before they start.
 *
 * Thread: any, one at a time for each endpoint
 * Owns:   ${list} is copied
 * Errors: 0 (no change); 1 (changed); -ENOMEM (no change)
 */
int endpoint_set_addresses(struct endpoint *e, struct loop_group *readers,
                           const struct address *list, unsigned n) NODISCARD;

/* endpoint_close(e): release the addresses of ${e}. Thread: any, after the last reader has ended */
void endpoint_close(struct endpoint *e);

/*
 * endpoint_set_flag(e, mark) / endpoint_clear_flag(e, mark):
 * Set or clear a flag. True if the flag changed.
 */
bool endpoint_set_flag(struct endpoint *e, enum endpoint_flag mark);
bool endpoint_clear_flag(struct endpoint *e, enum endpoint_flag mark);

/*
 * endpoint_set_why(e, why) / endpoint_copy_why(e, out) / endpoint_set_said(e, said) /
 * endpoint_copy_said(e, out):
 * Note what a failed check found / copy it, "" if there is nothing / the same of what its agent
 * answered.
 *
 * Units:  ${why} is cut to ENDPOINT_WHY_BYTES, the size of ${out}; ${said} to ENDPOINT_SAID_BYTES
 */
void endpoint_set_why(struct endpoint *e, const char *why);
void endpoint_copy_why(struct endpoint *e, char *out);
void endpoint_set_said(struct endpoint *e, const char *said);
void endpoint_copy_said(struct endpoint *e, char *out);

#endif
