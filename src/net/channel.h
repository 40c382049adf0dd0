/*
 * net/channel: a connected stream socket on a loop.
 *
 * Reads pass through the loop's scratch buffer and the pipeline; writes buffer only what the kernel
 * does not take.
 *
 * Water marks: above CHANNEL_HIGH_BYTES of pending output the channel is unwritable; below
 * CHANNEL_LOW_BYTES it fires `writable`. In between, the source of the output should pause, but may
 * write.
 *
 *   init -> start -> [ peer's eof ] [ our eof sent ] -> both: ended -> HANDLER_CLOSED -> free
 *                    any error, channel_abort() --------------^
 *
 * A reap step, of this turn or a later one, closes the descriptor and reports HANDLER_CLOSED. Calls
 * on an ended channel are no-ops.
 */
#ifndef NET_CHANNEL_H
#define NET_CHANNEL_H

#include <ev.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cache_line.h"
#include "base/must.h"
#include "engine/task.h"
#include "net/hangup.h"
#include "net/netloop.h"
#include "net/pipeline.h"
#include "net/splice.h"

/* Netty's defaults (WriteBufferWaterMark). */
#define CHANNEL_LOW_BYTES  (32 * 1024)
#define CHANNEL_HIGH_BYTES (64 * 1024)

struct channel_linger;

/* How long an ending channel waits for its peer; 0: unbounded. */
struct channel_linger_conf {
    int64_t timeout_ns; /* longest time in which nothing is acknowledged */
    int64_t max_ns;     /* total time, with CHANNEL_END_BOUNDED */
};

enum channel_stop {
    CHANNEL_STOP_RECEIVER = 1 << 0,
    CHANNEL_STOP_HANDLER = 1 << 1, /* a handler's buffer is full */
    CHANNEL_STOP_METER = 1 << 2,   /* see channel_meter() */
    CHANNEL_STOP_DELAY = 1 << 3,   /* a handler delays input, end of file included */
    CHANNEL_STOP_RETRY = 1 << 4,   /* connecting to another server */
    CHANNEL_STOP_ANY = 0xff,
};

enum channel_end_how {
    CHANNEL_END_FLUSH,
    CHANNEL_END_RESET,
    CHANNEL_END_INPUT_ONLY,
    CHANNEL_END_NOW,
    CHANNEL_END_BOUNDED = 1 << 4, /* flag for the first three: linger at most max_ns */
};

/*
 * note: layout. Cache misses dominate. An event touches two lines of the channel it reads (state,
 * and pipeline with the session's tail handler) and only the state line of the channel it writes.
 * The session aligns channels to CACHE_LINE_BYTES.
 *
 *   | seldom: 128 bytes | watcher, state: 64 bytes | pipeline, counters: 32 | tail handler ...
 */
struct channel {
    struct pipe *pipe; /* spliced bytes to send before `out`, or NULL */
    struct buffer out;
    struct channel *splice_to; /* NULL: never splice */
    struct task end;
    const struct channel_linger_conf *linger_conf; /* not owned */
    struct channel_linger *linger;                 /* NULL: not lingering */
    struct hangup_watch hangup;                    /* watches for a reset while `io` is stopped */
    int16_t error;                                 /* 0 or -errno */
    uint8_t input_pending;                         /* number of handlers that hold input */

    /* Watcher for both directions; io.data is the netloop. */
    alignas(CACHE_LINE_BYTES) struct ev_io io;
    uint64_t bytes_out;
    uint32_t flags;
    uint8_t watched;     /* events of `io` */
    uint8_t stopped;     /* enum channel_stop */
    uint8_t empty_reads; /* reads in a row without data, though readable */
    uint8_t splice_mode : 2;
    int8_t read_trend : 4; /* > 0: large reads in a row; < 0: last splice was small */

    struct pipeline pipeline;
    uint64_t bytes_in;
    int64_t last_io_at_ns;
};

_Static_assert(offsetof(struct channel, io) == 2 * CACHE_LINE_BYTES, "see note: layout");
_Static_assert(offsetof(struct channel, pipeline) == 3 * CACHE_LINE_BYTES, "see note: layout");

/*
 * channel_net(ch):
 *
 * Thread: loop
 */
static inline struct netloop *channel_net(const struct channel *ch)
{
    return ch->io.data;
}

/*
 * channel_init(ch, net, fd):
 * Take over the connected, non-blocking ${fd}.
 *
 * Thread: loop
 * Owns:   the channel owns ${fd}; ${ch} must live until HANDLER_CLOSED
 */
void channel_init(struct channel *ch, struct netloop *net, int fd);

/*
 * channel_start(ch):
 * Fire active() and start reading.
 *
 * Thread: loop
 */
void channel_start(struct channel *ch);

/*
 * channel_write(ch, data, len):
 * Send ${data} through the pipeline.
 *
 * Thread: loop
 * Errors: 0; -EPIPE (sending has ended or failed; nothing kept); -ENOMEM (nothing kept, ${ch} is
 *         aborted)
 */
int channel_write(struct channel *ch, const void *data, size_t len) NODISCARD;

/*
 * channel_cork(ch) / channel_uncork(ch):
 * Collect writes / send the collected ones; uncork before returning to the loop.
 *
 * Thread: loop
 */
void channel_cork(struct channel *ch);
void channel_uncork(struct channel *ch);

/*
 * channel_shutdown_write(ch):
 * Send end of file through the pipeline, behind pending output. After the peer's end of file this
 * ends the channel.
 *
 * Thread: loop
 */
void channel_shutdown_write(struct channel *ch);

/*
 * channel_stop_reading(ch, why) / channel_resume_reading(ch, why) / channel_stopped(ch, why):
 * Add the reasons ${why} to stop reading / remove them / is one of ${why} set? Reading resumes when
 * no reason is left. A stopped channel notices resets (net/hangup.h), but not end of file. No-op
 * while input is discarded.
 *
 * Thread: loop
 */
void channel_stop_reading(struct channel *ch, unsigned why);
void channel_resume_reading(struct channel *ch, unsigned why);
bool channel_stopped(const struct channel *ch, unsigned why);

/*
 * channel_meter(ch):
 * Call the tail's allow() before each read and its took() afterwards. When allow() returns 0, stop
 * with CHANNEL_STOP_METER. Discarded input is not metered.
 *
 * Thread: loop
 */
void channel_meter(struct channel *ch);

/*
 * channel_set_input_pending(ch, pending) / channel_input_pending(ch):
 * Count a handler that begins or ceases to hold input or end of file / does a handler hold input,
 * or CHANNEL_STOP_DELAY delay it, and is input not discarded? If so, ${ch} stays open even when
 * both directions have ended.
 *
 * Thread: loop
 */
void channel_set_input_pending(struct channel *ch, bool pending);
bool channel_input_pending(const struct channel *ch);

/*
 * channel_pace_writing(ch, wait):
 * For a handler that limits the output rate: make ${ch} unwritable while ${wait}.
 *
 * Thread: loop
 */
void channel_pace_writing(struct channel *ch, bool wait);

/*
 * channel_writable(ch):
 * False after pending output exceeded the high water mark (0, if memory is scarce) until it is
 * below the low one; also with pending spliced bytes, and while a handler paces writing.
 *
 * Thread: loop
 */
bool channel_writable(const struct channel *ch);

/*
 * channel_pending_bytes(ch) / channel_held_bytes(ch) / channel_unsent_bytes(ch):
 * Pending output / memory of buffer, pipe and handlers / unacknowledged bytes, pending or in the
 * kernel (a system call).
 *
 * Thread: loop
 */
size_t channel_pending_bytes(const struct channel *ch);

size_t channel_held_bytes(const struct channel *ch);

size_t channel_unsent_bytes(const struct channel *ch);

/*
 * channel_discard(ch, quiet_ns) / channel_discards(ch) / channel_input_cut(ch):
 * Discard input from now on / is input discarded, or has ${ch} ended? / was input lost: unread,
 * held by a handler, discarded, or reset before the peer's end of file? Input also counts as lost
 * if ${ch} has read some, and was active in the ${quiet_ns} before channel_discard().
 *
 * Thread: loop
 */
void channel_discard(struct channel *ch, int64_t quiet_ns);
bool channel_discards(const struct channel *ch);
bool channel_input_cut(const struct channel *ch);

/*
 * channel_end_input(ch, next):
 * For a handler whose protocol has an end of file of its own: stop reading for good, as after the
 * peer's end of file, and report HANDLER_EOF to ${next}. No-op if input has ended or is discarded.
 *
 * Thread: loop
 */
void channel_end_input(struct channel *ch, struct handler *next);

/*
 * channel_end(ch, how):
 * Close the connection; HANDLER_CLOSED follows. A later call can only be more abrupt.
 *
 *   CHANNEL_END_FLUSH       send pending bytes, in handlers too, then end of file; discard input
 *                           until the peer's end of file
 *   CHANNEL_END_RESET       send pending bytes; when all are acknowledged, reset (error 0).
 *                           Discard input.
 *   CHANNEL_END_INPUT_ONLY  discard input; write on until channel_shutdown_write().
 *   CHANNEL_END_NOW         end of file at once, without TIME_WAIT (unless both ends of file
 *                           cross); later input gets a reset. For channels without pending bytes.
 *
 * The first three linger as long as the peer acknowledges bytes (struct channel_linger_conf). When
 * all are acknowledged, FLUSH waits for the peer's end of file, and INPUT_ONLY for further writes:
 * for timeout_ns, at most 5 s. Finally ${ch} is closed if all bytes and our end of file are
 * acknowledged, else aborted with -ETIMEDOUT. When out of memory, it is aborted at once.
 *
 * Thread: loop
 * Source: nginx lingering_close; RFC 1122 4.2.2.13
 */
void channel_end(struct channel *ch, unsigned how);

/*
 * channel_detach(ch):
 * Return the descriptor; ${ch}, which has no pending output, ends without HANDLER_CLOSED. ${ch}
 * must live until the reap step.
 *
 * Thread: loop
 * Owns:   the caller owns the descriptor
 */
int channel_detach(struct channel *ch);

/*
 * channel_abort(ch, error):
 * Reset the connection; pending bytes are lost. HANDLER_CLOSED gets ${error} (0 or -errno). A unix
 * peer sees end of file, or ECONNRESET if it sent bytes that were not read.
 *
 * Thread: loop
 */
void channel_abort(struct channel *ch, int error);

/*
 * channel_notice_reset(ch):
 * Report a reset, or a unix peer that closes without sending, by HANDLER_BROKEN or HANDLER_CLOSED;
 * even before channel_start().
 *
 * Thread: loop
 */
void channel_notice_reset(struct channel *ch);

/*
 * channel_splice_to(ch, dst, mode):
 * Splice large reads to ${dst}, on the same loop, as ${mode} says. The caller promises to write all
 * input of ${ch} unchanged to ${dst}. Handlers in either pipeline prevent splicing.
 *
 * Thread: loop
 */
void channel_splice_to(struct channel *ch, struct channel *dst, enum splice_mode mode);

/*
 * channel_read_ended(ch) / channel_write_ended(ch) / channel_ended(ch):
 * Has the peer sent end of file? / have we, or has writing failed? / has ${ch} ended?
 *
 * Thread: loop
 */
bool channel_read_ended(const struct channel *ch);
bool channel_write_ended(const struct channel *ch);
bool channel_ended(const struct channel *ch);

#endif
