/*
 * net/pipe_pool: the pipes of one loop, for splice.
 *
 * One empty pipe is enough while receivers keep up: it is filled and emptied within a turn. A pipe that could
 * not be emptied belongs to the blocked connection until it is empty, and the loop opens another one. A few
 * empty ones are kept. A pipe that still holds bytes is never given back, only closed.
 */
#ifndef NET_PIPE_POOL_H
#define NET_PIPE_POOL_H

#include <stddef.h>

#include "base/must.h"

struct pipe {
    int read_fd;
    int write_fd;
    size_t bytes; /* in it now */
    struct pipe *next;
};

struct pipe_pool {
    struct pipe *free;
    unsigned n_free;
};

/*
 * pipe_pool_init(pool) / pipe_pool_close(pool):
 * An empty pool; close what it keeps.
 *
 * Thread: owner of ${pool}
 * Errors: none
 */
void pipe_pool_init(struct pipe_pool *pool);
void pipe_pool_close(struct pipe_pool *pool);

/*
 * pipe_pool_get(pool, out):
 * An empty pipe, kept or new.
 *
 * Thread: owner of ${pool}
 * Owns:   the caller has ${out}, until pipe_pool_put()
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int pipe_pool_get(struct pipe_pool *pool, struct pipe **out) MUST_CHECK;

/*
 * pipe_pool_put(pool, p):
 * Give a pipe back: an empty one is kept or closed, one with bytes in it is closed and they are lost.
 *
 * Thread: owner of ${pool}
 * Errors: none
 */
void pipe_pool_put(struct pipe_pool *pool, struct pipe *p);

#endif
