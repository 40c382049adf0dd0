/*
 * net/pipe_pool: the pipes of one loop, for splice.
 *
 * One empty pipe is enough while receivers keep up: it is filled and emptied within a turn. A pipe
 * that could not be emptied belongs to the blocked connection until it is empty, and the loop opens
 * another one. A few empty ones are kept. A pipe that still holds bytes is never given back, only
 * closed.
 *
 * note: lent pipes. The first pipe of a loop is its own. The descriptors of all others are lent
 *            (note:
 * lent in net/descriptor_budget.h): clients need them more. Without a pipe bytes are copied.
 */
#ifndef NET_PIPE_POOL_H
#define NET_PIPE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "base/must.h"

struct channel;
struct descriptor_budget;

struct pipe {
    int read_fd;
    int write_fd;
    size_t bytes;           /* in it now */
    bool lent;              /* see note: lent pipes */
    struct channel *holder; /* the blocked receiver; NULL: none */
    struct list link;       /* on one of the pool's lists */
};

struct pipe_pool {
    struct list free;
    struct list held; /* by blocked receivers */
    unsigned n_free;
    bool has_own;                          /* see note: lent pipes */
    struct descriptor_budget *descriptors; /* NULL: not counted */
};

/*
 * pipe_pool_init(pool) / pipe_pool_close(pool):
 * An empty pool; close what it keeps.
 *
 * Thread: owner of ${pool}
 */
void pipe_pool_init(struct pipe_pool *pool);
void pipe_pool_close(struct pipe_pool *pool);

/*
 * pipe_pool_get(pool, out):
 * An empty pipe, kept or new.
 *
 * Thread: owner of ${pool}
 * Owns:   the caller has ${out}, until pipe_pool_put()
 * Errors: 0; -EMFILE (also: too few descriptors are left for clients), -ENFILE, -ENOMEM
 */
int pipe_pool_get(struct pipe_pool *pool, struct pipe **out) NODISCARD;

/*
 * pipe_pool_hold(pool, p, holder) / pipe_pool_first_lent(pool):
 * ${holder} keeps ${p} beyond this turn; a lent pipe that is kept so, or NULL.
 *
 * Thread: owner of ${pool}
 */
void pipe_pool_hold(struct pipe_pool *pool, struct pipe *p, struct channel *holder);
struct pipe *pipe_pool_first_lent(const struct pipe_pool *pool);

/*
 * pipe_pool_trim(pool):
 * Close the empty pipes that are lent.
 *
 * Thread: owner of ${pool}
 */
void pipe_pool_trim(struct pipe_pool *pool);

/*
 * pipe_pool_put(pool, p):
 * Give a pipe back: an empty one is kept or closed, one with bytes in it is closed and they are
 * lost. A lent one is not kept while its descriptors are wanted back.
 *
 * Thread: owner of ${pool}
 */
void pipe_pool_put(struct pipe_pool *pool, struct pipe *p);

#endif
