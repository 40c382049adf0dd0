/*
 * engine/loop_group: a fixed number of loops and the rule that picks one of them.
 *
 * Building a group creates every loop (an epoll instance each) and no thread.
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
    unsigned n_loops; /* at least 1 */
    enum chooser_kind chooser;
    struct loop_conf loop; /* its name and processor are not used */
    const unsigned *cpus;  /* loop i runs on the i-th, and round again; borrowed */
    unsigned n_cpus;       /* 0: all run anywhere */
};

/*
 * loop_group_create(out, conf):
 * Build all loops, or none.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int loop_group_create(struct loop_group **out, const struct loop_group_conf *conf) NODISCARD;

/*
 * loop_group_size(g) / loop_group_at(g, i):
 * The loops, 0 <= ${i} < size.
 *
 * Thread: any
 */
unsigned loop_group_size(const struct loop_group *g);
struct loop *loop_group_at(const struct loop_group *g, unsigned i);

/*
 * loop_group_next(g):
 * The chooser's pick; NULL when all loops have ended.
 *
 * Thread: any
 */
struct loop *loop_group_next(struct loop_group *g);

/*
 * loop_group_availability(g):
 * That of the loop that loop_group_next() would find now.
 *
 * Thread: any
 */
enum loop_availability loop_group_availability(const struct loop_group *g);

/*
 * loop_group_stop(g, quiet_ns, timeout_ns):
 * loop_stop() for each loop.
 *
 * Thread: any
 * Units:  ns
 */
void loop_group_stop(struct loop_group *g, int64_t quiet_ns, int64_t timeout_ns);

/*
 * loop_group_join(g) / loop_group_join_until(g, at_ns):
 * Wait until every loop has ended, but no longer than until ${at_ns}; after loop_group_stop().
 *
 * Thread: none that is a loop
 * Errors: 0; -ETIMEDOUT (some loop hangs: see loop_state() and loop_stats() of each)
 */
void loop_group_join(struct loop_group *g);
int loop_group_join_until(struct loop_group *g, int64_t at_ns) NODISCARD;

/*
 * loop_group_state(g):
 * How far the loop is that is furthest behind: LOOP_TERMINATED when all have ended,
 * LOOP_SHUTTING_DOWN when all have at least begun to.
 *
 * Thread: any
 */
enum loop_state loop_group_state(const struct loop_group *g);

/*
 * loop_group_set_io_ratio(g, io_ratio):
 * loop_set_io_ratio() for each loop.
 *
 * Thread: any
 * Units:  percent
 * Errors: 0; -EINVAL (not 1 to 100; nothing changed)
 */
int loop_group_set_io_ratio(struct loop_group *g, unsigned io_ratio) NODISCARD;

/*
 * loop_group_destroy(g):
 * Free loops that have ended or were never started; NULL is allowed.
 *
 * Thread: none that is a loop
 */
void loop_group_destroy(struct loop_group *g);

#endif
