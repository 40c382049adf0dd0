/*
 * net/splice: moves bytes between sockets through a pipe, without copying to user space.
 *
 * Splicing pays off from 4 KiB per read (tests/bench/README.md). So it begins after two large reads
 * in a row, and ends after two small splices.
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
/* A pipe's default size. */
#define SPLICE_MAX_BYTES (64 * 1024)

/*
 * splice_possible(ch):
 * Should the next read of ${ch} be spliced? True for large reads if there are no handlers and the
 * receiver has no pending output.
 *
 * Thread: loop
 */
bool splice_possible(const struct channel *ch);

/*
 * splice_forward(ch, max):
 * Move up to ${max} bytes (at most SPLICE_MAX_BYTES) to ch->splice_to. Bytes that the receiver does
 * not take yet become its pending output.
 *
 * Thread: loop
 * Errors: bytes moved; 0 (end of file); -EAGAIN; -EOPNOTSUPP (nothing moved, copy instead); -errno
 *         of the read side
 */
ssize_t splice_forward(struct channel *ch, size_t max) NODISCARD;

/*
 * splice_pipe_out(ch, p):
 * Send the bytes of ${p} to the socket.
 *
 * Thread: loop
 * Errors: bytes sent; -EAGAIN; -errno
 */
ssize_t splice_pipe_out(struct channel *ch, struct pipe *p) NODISCARD;

/* Limit of pipes given back per step: each is copied and closed. */
#define SPLICE_GIVE_BACK 32

/*
 * splice_give_back_pipes(net, max):
 * Copy the bytes of pipes with borrowed descriptors (note: lent pipes in net/pipe_pool.h) to
 * memory, and return the descriptors. Stop after ${max} pipes or BUDGET_STEP_NS (false: more).
 *
 * Thread: loop
 */
bool splice_give_back_pipes(struct netloop *net, unsigned max) NODISCARD;

#endif
