/*
 * net/pipe_pool: a loop's pipes for splice(2).
 *
 * One pipe suffices while receivers keep up. A receiver that blocks keeps the pipe until it is
 * empty, and the loop opens another.
 *
 * note: lent pipes. The first pipe is the loop's own. Further pipes borrow descriptors (note: lent
 * in net/descriptor_budget.h). Without a pipe, bytes are copied.
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
    size_t bytes;
    bool cut_short;         /* by the last splice(2) out of it, see splice.c */
    bool lent;              /* see note: lent pipes */
    bool adopted;           /* see pipe_pool_adopt() */
    struct channel *holder; /* blocked receiver; NULL: none */
    struct list link;
};

struct pipe_pool {
    struct list free;
    struct list held; /* pipes of blocked receivers */
    unsigned n_free;
    bool has_own;
    struct descriptor_budget *descriptors; /* NULL: not counted */
};

/*
 * pipe_pool_init(pool) / pipe_pool_close(pool):
 * Initialize an empty pool / close its free pipes.
 *
 * Thread: owner
 */
void pipe_pool_init(struct pipe_pool *pool);
void pipe_pool_close(struct pipe_pool *pool);

/*
 * pipe_pool_get(pool, out):
 * Get an empty pipe.
 *
 * Thread: owner
 * Owns:   the caller owns ${out}, until pipe_pool_put()
 * Errors: 0; -EMFILE (also: descriptor budget), -ENFILE, -ENOMEM
 */
int pipe_pool_get(struct pipe_pool *pool, struct pipe **out) NODISCARD;

/*
 * pipe_pool_hold(pool, p, holder) / pipe_pool_first_lent(pool):
 * Keep ${p} for the blocked ${holder} / return a lent pipe that a receiver keeps, or NULL.
 *
 * Thread: owner
 */
void pipe_pool_hold(struct pipe_pool *pool, struct pipe *p, struct channel *holder);
struct pipe *pipe_pool_first_lent(const struct pipe_pool *pool);

/*
 * pipe_pool_give(pool, p):
 * Take ${p}, which a receiver keeps, out of ${pool}, for pipe_pool_hold() of another pool. False:
 * it is the loop's own, and the descriptor budget lends no other.
 *
 * Thread: owner
 * Owns:   the caller owns ${p}
 */
bool pipe_pool_give(struct pipe_pool *pool, struct pipe *p);

/*
 * pipe_pool_adopt(pool, out, fds, bytes) / pipe_pool_is_drained(p):
 * Make a lent pipe of both ends of a pipe with ${bytes}, which another process has filled. It is
 * closed when it is empty, as that process may still have it. / Has that process emptied it?
 *
 * Thread: owner
 * Owns:   takes ${fds}, read end first, also after an error; the caller owns ${out}
 * Errors: 0; -EMFILE (descriptor budget); -ENOMEM
 */
int pipe_pool_adopt(struct pipe_pool *pool, struct pipe **out, const int *fds,
                    size_t bytes) NODISCARD;
bool pipe_pool_is_drained(const struct pipe *p);

/*
 * pipe_pool_trim(pool):
 * Close the loop's empty pipes whose descriptors are borrowed (note: lent pipes).
 *
 * Thread: owner
 */
void pipe_pool_trim(struct pipe_pool *pool);

/*
 * pipe_pool_put(pool, p):
 * Return a pipe: it is kept if empty, else closed and its bytes lost. A lent pipe is also closed if
 * the pool is full or the budget wants it back.
 *
 * Thread: owner
 */
void pipe_pool_put(struct pipe_pool *pool, struct pipe *p);

#endif
