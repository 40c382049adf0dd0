/*
 * net/splice: moving bytes between two sockets through a pipe, without a copy through user space.
 *
 * Worth it from about 4 KiB a read on, below that a copy is cheaper. A direction is switched over
 * after two large reads in a row and back after two small ones; the figures are in
 * tests/bench/README.md.
 *
 * SPLICE_F_MORE is never used: it holds back the last segment for 200 ms.
 */
#ifndef NET_SPLICE_H
#define NET_SPLICE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"

struct channel;
struct netloop;
struct pipe;

enum splice_mode { SPLICE_AUTO, SPLICE_ON, SPLICE_OFF };

#define SPLICE_WORTH_BYTES 4096
#define SPLICE_AFTER_READS 2
/* One splice: a pipe's default size. A larger one gains nothing, measured. */
#define SPLICE_MAX_BYTES (64 * 1024)

/*
 * splice_possible(ch):
 * Is the next read of ${ch} to be spliced to ch->splice_to? Not when bytes wait there (they would
 * be overtaken), when a handler stands in between, or when reads are small.
 *
 * Thread: loop of ${ch}
 */
bool splice_possible(const struct channel *ch);

/*
 * splice_forward(ch, max):
 * Move what has come, ${max} bytes and SPLICE_MAX_BYTES at most, to ch->splice_to. What that one
 * does not take stays in a pipe that is its own until it is empty.
 *
 * Thread: loop of ${ch}
 * Units:  bytes
 * Errors: bytes moved; 0 (end of file); -EAGAIN; -EOPNOTSUPP (nothing moved, copy: no pipe, or
 *         ${ch} cannot be spliced); -errno of the read side
 */
ssize_t splice_forward(struct channel *ch, size_t max) NODISCARD;

/*
 * splice_pipe_out(ch, p):
 * Send what ${p} holds to the peer of ${ch}.
 *
 * Thread: loop of ${ch}
 * Units:  bytes
 * Errors: bytes sent; -EAGAIN; -errno
 */
ssize_t splice_pipe_out(struct channel *ch, struct pipe *p) NODISCARD;

/*
 * splice_give_back_pipes(net):
 * Give back the descriptors of all pipes that are lent; see note: lent pipes in net/pipe_pool.h.
 * What they hold is kept in memory.
 *
 * Thread: loop of ${net}
 */
void splice_give_back_pipes(struct netloop *net);

#endif
