/*
 * upstream/endpoint: one place that sessions can be connected to, how many are there now, and what
 * is held against it.
 *
 * Every worker reads and counts
 * at the same time: all that changes is atomics, relaxed unless said otherwise, for no other memory
 * hangs on them.
 */
#ifndef UPSTREAM_ENDPOINT_H
#define UPSTREAM_ENDPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cache_line.h"
#include "base/must.h"
#include "net/address.h"

struct loop_group;

/* What is held against an endpoint: bits above the count in its load. */
enum endpoint_flag {
    ENDPOINT_DOWN = 1 << 24,    /* its health checks fail */
    ENDPOINT_EJECTED = 1 << 25, /* too many sessions failed there, one after the other */
    ENDPOINT_ABSENT = 1 << 26,  /* nobody knows where it is */
    ENDPOINT_WARMING = 1 << 27  /* it has come up just now and is to get less than its share */
};

#define ENDPOINT_COUNT_MASK 0xffffffu

/* With these nobody is sent there (panic aside, and never to one that is absent). */
#define ENDPOINT_UNFIT (ENDPOINT_DOWN | ENDPOINT_EJECTED | ENDPOINT_ABSENT)

/* More addresses than that of one endpoint are not made use of. */
#define ENDPOINT_ADDRESSES 16

/* Where an endpoint is, in the order to try; immutable once it is published. */
struct endpoint_addresses {
    /*
     * note: users. The endpoint itself, and each session that connects. Who lets go last frees it.
     * A session counts itself in just after it has read the pointer, so the endpoint lets go of
     * what it replaced only when no worker can be between the two any more (engine/grace).
     */
    atomic_uint users;
    unsigned n; /* at least 1 */
    struct address list[];
};

/* What the endpoints of a group have in common. */
struct endpoint_group {
    _Atomic uint32_t load; /* sessions at all of them */
    char apart[CACHE_LINE_BYTES - sizeof(uint32_t)];
    /*
     * How often a mark of one of them has come or gone; see note: marks. Read at each pick, written
     * seldom.
     */
    _Atomic uint32_t changes;
    /*
     * A mark of one of them, or where it is, has changed. On the thread of who changed it. NULL:
     * nobody asks.
     */
    void (*changed)(struct endpoint_group *g);
};

struct endpoint {
    const char *name; /* for logs */
    _Atomic(struct endpoint_addresses *)
        addresses; /* NULL: a host name that is not known yet; see note: users */
    atomic_uint
        /* 0: gets no sessions; a change needs another balancer, see upstream/membership.h */
        weight;
    unsigned max_connections; /* 0: any number */
    atomic_uint level; /* those of a higher one are backups of the lower ones; changes likewise */
    uint64_t hash;     /* of what it is known by, so that keys find it again after a restart */

    /*
     * note: marks. Setting or clearing one is a release, and so is counting it in `changes` right
     * after: who sees the new count sees the mark, and who sees ENDPOINT_WARMING sees since when.
     * What is known of a whole group (how many are fit) is thus worked out once for each change and
     * not for each session.
     *
     * note: load. The sessions that were sent there and have not ended (connecting ones among
     * them), and the marks, in one word. Those of a group lie side by side, so that looking at a
     * thousand of them reads 4 KiB and not a thousand lines.
     */
    _Atomic uint32_t *load;
    struct endpoint_group *group;
    _Atomic int64_t warming_since_ns; /* to be written before ENDPOINT_WARMING is */
};

/*
 * endpoint_load(e) / endpoint_active(e):
 * The whole word, see note: load; the sessions in it.
 *
 * Thread: any
 */
static inline uint32_t endpoint_load(const struct endpoint *e)
{
    return atomic_load_explicit(e->load, memory_order_relaxed);
}

static inline uint32_t endpoint_active(const struct endpoint *e)
{
    return endpoint_load(e) & ENDPOINT_COUNT_MASK;
}

/*
 * endpoint_is_used(e):
 * Has it a weight? Without one it gets no sessions, whatever state the others are in.
 *
 * Thread: any
 */
static inline bool endpoint_is_used(const struct endpoint *e)
{
    return atomic_load_explicit(&e->weight, memory_order_relaxed) > 0;
}

/*
 * endpoint_enter(e) / endpoint_leave(e):
 * One session more is sent there, unless it has as many as it may have; one has ended. Nobody ever
 * sees more of them than that, and no place that is free is refused because of one who is being
 * refused.
 *
 * Thread: any
 * Errors: 0; -EBUSY (max_connections)
 */
int endpoint_enter(struct endpoint *e) NODISCARD;
void endpoint_leave(struct endpoint *e);

/*
 * endpoint_use_addresses(e) / endpoint_release_addresses(at):
 * Where ${e} is now, NULL when its name is not known yet; that is no longer needed (NULL is
 * allowed).
 *
 * Thread: a loop that endpoint_set_addresses() knows as a reader, or its own caller's; any
 * Owns:   what it gives stays as it is until it is released
 * Errors: NULL
 */
struct endpoint_addresses *endpoint_use_addresses(const struct endpoint *e);
void endpoint_release_addresses(struct endpoint_addresses *at);

/*
 * endpoint_addresses_are(at, list, n):
 * Are these ${n} addresses, in any order, all there are?
 *
 * Thread: any
 */
bool endpoint_addresses_are(const struct endpoint_addresses *at, const struct address *list,
                            unsigned n);

/*
 * endpoint_set_addresses(e, readers, list, n):
 * From now on ${e} is at these ${n} > 0 addresses. Nothing happens if it is at the same already, in
 * any order. ${readers} are the loops that may be reading; NULL before they start.
 *
 * Thread: one at a time for each endpoint
 * Owns:   ${list} is copied
 * Errors: 0 (nothing new); 1 (it is somewhere else now); -ENOMEM (nothing changed)
 */
int endpoint_set_addresses(struct endpoint *e, struct loop_group *readers,
                           const struct address *list, unsigned n) NODISCARD;

/*
 * endpoint_close(e):
 * Let go of its addresses.
 *
 * Thread: after the last reader has ended
 */
void endpoint_close(struct endpoint *e);

/*
 * endpoint_set_flag(e, mark) / endpoint_clear_flag(e, mark):
 * Hold ${mark} against it, or no longer. True if that is news.
 *
 * Thread: any
 */
bool endpoint_set_flag(struct endpoint *e, enum endpoint_flag mark);
bool endpoint_clear_flag(struct endpoint *e, enum endpoint_flag mark);

#endif
