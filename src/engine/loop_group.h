/*
 * engine/loop_group: group of loops with a chooser, which can grow and shrink.
 *
 * Creation makes all epoll instances, but no threads. A loop out of use is parked: no longer
 * chosen, kept for later growth.
 *
 * note: size. Loops keep their places. A commit publishes new loops, and other objects by loop, in
 * slots filled before it, with the size. Sequentially consistent: a commit sees stops and ratios or
 * is seen by them; loops that grace_begin() misses see the replacement.
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
    unsigned max_loops; /* room to grow; 0: n_loops */
    enum chooser_kind chooser;
    struct loop_conf loop; /* name and processor unused */
    const unsigned *cpus;  /* processor of loop i, cyclic */
    unsigned n_cpus;       /* 0: not pinned */
};

/* A prepared change. */
struct loop_group_change {
    struct loop_group *group;
    unsigned n_in_use;
    unsigned first, end; /* numbers of the new loops: from first to below end */
};

/*
 * loop_group_create(out, conf):
 * Create all loops, or none.
 *
 * Thread: any
 * Owns:   copies ${conf}
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int loop_group_create(struct loop_group **out, const struct loop_group_conf *conf) NODISCARD;

/*
 * loop_group_prepare(g, n, change) / loop_group_commit(change) / loop_group_cancel(change):
 * Create the loops missing for ${n} in use / put the first ${n} in use and park the others / undo
 * the prepare. One change at a time.
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
 * Return the number of loops, parked ones too / of loops that are chosen / the largest size.
 *
 * Thread: any
 */
unsigned loop_group_size(const struct loop_group *g);
unsigned loop_group_in_use(const struct loop_group *g);
unsigned loop_group_max(const struct loop_group *g);

/*
 * loop_group_at(g, i):
 * Return loop ${i} from 0, in a change also a new one.
 *
 * Thread: any
 */
struct loop *loop_group_at(const struct loop_group *g, unsigned i);

/*
 * loop_group_next(g):
 * Return the chooser's loop; NULL when all in use have ended.
 *
 * Thread: any
 */
struct loop *loop_group_next(struct loop_group *g);

/*
 * loop_group_availability(g):
 * Return the best availability of loops in use.
 *
 * Thread: any
 */
enum loop_availability loop_group_availability(const struct loop_group *g);

/*
 * loop_group_stop(g, quiet_ns, timeout_ns):
 * Stop each loop, and those that a change adds later.
 *
 * Thread: any
 */
void loop_group_stop(struct loop_group *g, int64_t quiet_ns, int64_t timeout_ns);

/*
 * loop_group_join_until(g, at_ns):
 * Wait for all loops to end, until ${at_ns}.
 *
 * Thread: any but a loop
 * Errors: 0; -ETIMEDOUT (see loop_state() of each)
 */
int loop_group_join_until(struct loop_group *g, int64_t at_ns) NODISCARD;

/*
 * loop_group_state(g):
 * Return the state of the loop furthest behind.
 *
 * Thread: any
 */
enum loop_state loop_group_state(const struct loop_group *g);

/*
 * loop_group_set_io_ratio(g, io_ratio):
 * Set it for each loop.
 *
 * Thread: any
 * Errors: 0; -EINVAL (not 1 to 100)
 */
int loop_group_set_io_ratio(struct loop_group *g, unsigned io_ratio) NODISCARD;

/*
 * loop_group_destroy(g):
 * Free ${g}, ended or never started, or NULL.
 *
 * Thread: any but a loop
 */
void loop_group_destroy(struct loop_group *g);

#endif
