/*
 * engine/loop_group: group of loops with a chooser, which can grow and shrink.
 *
 * Creation makes all epoll instances, but no threads. A loop out of use is parked: no longer
 * chosen, kept for later growth.
 *
 * note: size. A loop keeps its number. Storing a new size publishes the new loops, and what other
 * modules keep per loop: all were created before. The store is sequentially consistent: either the
 * commit sees a stop or a new io_ratio, or loop_group_stop() and loop_group_set_io_ratio() see the
 * new size; and a loop that grace_begin() does not see reads the new pointer.
 */
#ifndef ENGINE_LOOP_GROUP_H
#define ENGINE_LOOP_GROUP_H

#include "base/must.h"
#include "engine/chooser.h"
#include "engine/loop.h"

struct loop_group;

struct loop_group_conf {
    const char *name; /* threads are called NAME-POOL-1, NAME-POOL-2 ... */
    unsigned pool;
    unsigned n_loops;   /* at least 1 */
    unsigned max_loops; /* 0: n_loops */
    enum chooser_kind chooser;
    struct loop_conf loop; /* name and processor are set for each loop */
    const unsigned *cpus;  /* of loop i: cpus[i % n_cpus] */
    unsigned n_cpus;       /* 0: not pinned */
};

/* A prepared change of the number of loops in use. */
struct loop_group_change {
    struct loop_group *group;
    unsigned n_in_use;
    unsigned first, end; /* numbers of the new loops: first to end - 1 */
};

/*
 * loop_group_create(out, conf):
 *
 * Thread: any
 * Owns:   copies ${conf}
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int loop_group_create(struct loop_group **out, const struct loop_group_conf *conf) NODISCARD;

/*
 * loop_group_prepare(g, n, change) / loop_group_commit(change) / loop_group_cancel(change):
 * Create the loops that are missing for ${n} in use / use the first ${n} loops and park the others
 * / destroy the created loops. One change at a time.
 *
 * Thread: one, for all changes
 * Units:  1 <= ${n} <= max_loops
 * Errors: as loop_group_create()
 */
int loop_group_prepare(struct loop_group *g, unsigned n,
                       struct loop_group_change *change) NODISCARD;
void loop_group_commit(const struct loop_group_change *change);
void loop_group_cancel(const struct loop_group_change *change);

/*
 * loop_group_size(g) / loop_group_in_use(g) / loop_group_max(g):
 * Number of loops, parked ones included / of loops in use / max_loops.
 *
 * Thread: any
 */
unsigned loop_group_size(const struct loop_group *g);
unsigned loop_group_in_use(const struct loop_group *g);
unsigned loop_group_max(const struct loop_group *g);

/*
 * loop_group_made(g):
 * The size with a change under way; without one, loop_group_size().
 *
 * Thread: that of the changes
 */
unsigned loop_group_made(const struct loop_group *g);

/*
 * loop_group_at(g, i):
 * Loop ${i}, from 0; during a change also a new one.
 *
 * Thread: any
 */
struct loop *loop_group_at(const struct loop_group *g, unsigned i);

/*
 * loop_group_next(g):
 * The loop for the next connection; NULL if all in use have ended.
 *
 * Thread: any
 */
struct loop *loop_group_next(struct loop_group *g);

/*
 * loop_group_availability(g):
 * The best availability among the loops in use.
 *
 * Thread: any
 */
enum loop_availability loop_group_availability(const struct loop_group *g);

/*
 * loop_group_stop(g, quiet_ns, timeout_ns):
 * Stop all loops, and those that a change adds later.
 *
 * Thread: any
 */
void loop_group_stop(struct loop_group *g, int64_t quiet_ns, int64_t timeout_ns);

/*
 * loop_group_join_until(g, at_ns):
 * Wait until all loops have ended, or until ${at_ns}.
 *
 * Thread: any but a loop
 * Errors: 0; -ETIMEDOUT (see loop_state() of each)
 */
int loop_group_join_until(struct loop_group *g, int64_t at_ns) NODISCARD;

/*
 * loop_group_state(g):
 * The least advanced state among the loops.
 *
 * Thread: any
 */
enum loop_state loop_group_state(const struct loop_group *g);

/*
 * loop_group_set_io_ratio(g, io_ratio):
 * Set it for all loops, later ones too.
 *
 * Thread: any
 * Errors: 0; -EINVAL (not 1 to 100)
 */
int loop_group_set_io_ratio(struct loop_group *g, unsigned io_ratio) NODISCARD;

/*
 * loop_group_destroy(g):
 * Free ${g}, whose loops have ended or never started, or NULL.
 *
 * Thread: any but a loop
 */
void loop_group_destroy(struct loop_group *g);

#endif
