/*
 * engine/loop_group: group of loops that can grow and shrink, with a chooser.
 *
 * Creating a loop creates its epoll instance, but no thread. A loop out of use is parked: no longer
 * chosen, kept for later growth.
 *
 * note: size. A loop keeps its number. New loops, and what other modules keep per loop, exist
 * before the store of the new size publishes them. The store is sequentially consistent. So either
 * the commit sees a stop or a new io_ratio, or loop_group_stop() or loop_group_set_io_ratio() sees
 * the new size. Likewise, a new loop that grace_begin() does not see reads the new pointer.
 */
#ifndef ENGINE_LOOP_GROUP_H
#define ENGINE_LOOP_GROUP_H

#include "base/must.h"
#include "engine/chooser.h"
#include "engine/loop.h"

struct loop_group;
struct move_gate;

struct loop_group_conf {
    const char *name; /* threads are called NAME-POOL-1, NAME-POOL-2 ... */
    unsigned pool;
    unsigned n_loops;   /* 0: none, until loop_group_prepare() */
    unsigned max_loops; /* 0: n_loops */
    enum chooser_kind chooser;
    struct loop_conf loop; /* name and processor are set for each loop */
    const unsigned *cpus;  /* processors; loop i runs on cpus[i % n_cpus] */
    unsigned n_cpus;       /* 0: loops are not pinned */
};

/* A prepared change of the number of loops in use. */
struct loop_group_change {
    struct loop_group *group;
    unsigned n_in_use;
    unsigned first, end; /* numbers of the new loops: first to end - 1 */
};

/*
 * loop_group_create(out, conf):
 * Create a group of loops without threads.
 *
 * Owns:   copies ${conf}
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int loop_group_create(struct loop_group **out, const struct loop_group_conf *conf) NODISCARD;

/*
 * loop_group_prepare(g, n, change) / loop_group_commit(change) / loop_group_cancel(change):
 * Create loops until there are ${n} / use the first ${n} loops and park the rest / destroy the
 * loops that were created. One change at a time.
 *
 * Thread: any, one thread for all changes
 * Units:  ${n} <= max_loops
 * Errors: as loop_group_create()
 */
int loop_group_prepare(struct loop_group *g, unsigned n,
                       struct loop_group_change *change) NODISCARD;
void loop_group_commit(const struct loop_group_change *change);
void loop_group_cancel(const struct loop_group_change *change);

/*
 * loop_group_size(g) / loop_group_in_use(g) / loop_group_max(g):
 * Number of loops, parked ones included / of loops in use / max_loops.
 */
unsigned loop_group_size(const struct loop_group *g);
unsigned loop_group_in_use(const struct loop_group *g);
unsigned loop_group_max(const struct loop_group *g);

/*
 * loop_group_made(g):
 * Number of loops, including those of an uncommitted change.
 *
 * Thread: as loop_group_prepare()
 */
unsigned loop_group_made(const struct loop_group *g);

/* loop_group_uses(g, loop): is ${loop} one of ${g} in use? */
bool loop_group_uses(const struct loop_group *g, const struct loop *loop);

/* loop_group_moves(g): the gate of moves between the loops of ${g}. */
struct move_gate *loop_group_moves(struct loop_group *g);

/* loop_group_at(g, i): return loop ${i}, 0 <= ${i} < loop_group_made(). */
struct loop *loop_group_at(const struct loop_group *g, unsigned i);

/*
 * loop_group_next(g):
 * Select the loop for the next connection; NULL if all loops in use have ended.
 */
struct loop *loop_group_next(struct loop_group *g);

/*
 * loop_group_start(g):
 * Start the thread of one loop, to learn at once whether there can be one. The others start with
 * their first tasks.
 *
 * Errors: 0; -EAGAIN (no loop has a thread, or can start one: logged)
 */
int loop_group_start(struct loop_group *g) NODISCARD;

/*
 * loop_group_next_in(g, rounds):
 * loop_group_next() for arrivals that have rounds of their own (engine/chooser).
 */
struct loop *loop_group_next_in(struct loop_group *g, struct chooser_rounds *rounds);

/*
 * loop_group_near(g):
 * Select a loop for a connection that the current loop has accepted: see chooser_pick_near(). NULL
 * if the current loop is not one of ${g} in use.
 */
struct loop *loop_group_near(struct loop_group *g);

/* loop_group_availability(g): the best availability among the loops in use. */
enum loop_availability loop_group_availability(const struct loop_group *g);

/*
 * loop_group_stop(g, quiet_ns, timeout_ns):
 * Stop all loops, including loops that a later change adds.
 */
void loop_group_stop(struct loop_group *g, int64_t quiet_ns, int64_t timeout_ns);

/*
 * loop_group_join_until(g, at_ns):
 * Wait until all loops have ended, or until ${at_ns}.
 *
 * Thread: any but loops
 * Errors: 0; -ETIMEDOUT (loop_state() tells which loops run)
 */
int loop_group_join_until(struct loop_group *g, int64_t at_ns) NODISCARD;

/* loop_group_state(g): the least advanced state among the loops. */
enum loop_state loop_group_state(const struct loop_group *g);

/*
 * loop_group_set_io_ratio(g, io_ratio) / loop_group_set_queue_wait_goal(g, goal_ns):
 * Call loop_set_io_ratio() / loop_set_queue_wait_goal() for all loops, also for those added later.
 *
 * Errors: as loop_set_io_ratio()
 */
int loop_group_set_io_ratio(struct loop_group *g, unsigned io_ratio) NODISCARD;
void loop_group_set_queue_wait_goal(struct loop_group *g, int64_t goal_ns);

/*
 * loop_group_destroy(g):
 * Free ${g}, whose loops have ended or never started. NULL is ignored.
 *
 * Thread: any but loops
 */
void loop_group_destroy(struct loop_group *g);

#endif
