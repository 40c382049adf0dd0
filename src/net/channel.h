/*
 * net/channel: a connected stream socket on a loop.
 *
 * Input passes through the loop's scratch buffer to the pipeline. Output is sent at once; only the
 * bytes that the kernel refuses are buffered.
 *
 * Water marks: when pending output exceeds CHANNEL_HIGH_BYTES the channel becomes unwritable; below
 * CHANNEL_LOW_BYTES it calls `writable`. An unwritable channel still accepts writes, but their
 * source should pause.
 *
 *   init -> start -> [ peer's eof ] [ our eof sent ] -> both: ended -> HANDLER_CLOSED -> free
 *                    any error, channel_abort() --------------^
 *
 * The descriptor is closed, and HANDLER_CLOSED reported, in a reap step of this turn or a later
 * one. Calls on an ended channel are no-ops.
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
#include "net/event_load.h"
#include "net/hangup.h"
#include "net/netloop.h"
#include "net/pipeline.h"
#include "net/splice.h"

/* Netty's defaults (WriteBufferWaterMark). */
#define CHANNEL_LOW_BYTES  (32 * 1024)
#define CHANNEL_HIGH_BYTES (64 * 1024)

struct channel_linger;
struct sock_options;

/* How long an ending channel waits for its peer; 0: unbounded. */
struct channel_linger_conf {
    int64_t timeout_ns; /* longest time without an acknowledgement */
    int64_t max_ns;     /* limit of the total time with CHANNEL_END_BOUNDED */
};

enum channel_stop {
    CHANNEL_STOP_RECEIVER = 1 << 0,
    CHANNEL_STOP_HANDLER = 1 << 1, /* a handler's buffer is full */
    CHANNEL_STOP_METER = 1 << 2,   /* see channel_meter() */
    CHANNEL_STOP_DELAY = 1 << 3,   /* a handler delays input, end of file included */
    CHANNEL_STOP_RETRY = 1 << 4,   /* connecting to another server */
    CHANNEL_STOP_ANY = 0xff,
};

/* How far the end of a channel has come; only forward, see channel_enter(). */
enum channel_phase {
    CHANNEL_OPEN,       /* bytes are sent */
    CHANNEL_EOF_WANTED, /* end of file follows pending output */
    CHANNEL_EOF_SENT,
    CHANNEL_RESETTING, /* a reset follows pending output; the linger timer sends it */
    CHANNEL_BROKEN,    /* writing failed; reading goes on */
    CHANNEL_CLOSED,    /* to be closed in the next reap step, or detached */
    CHANNEL_ABORTED,   /* to be reset in the next reap step */
};

enum channel_end_how {
    CHANNEL_END_FLUSH,
    CHANNEL_END_RESET,
    CHANNEL_END_INPUT_ONLY,
    CHANNEL_END_NOW,
    CHANNEL_END_BOUNDED = 1 << 4, /* flag for the first three: linger for max_ns at most */
};

/*
 * note: layout. Cache misses dominate the cost of an event. It touches two lines of the channel
 * that is read: the state, and the pipeline with the session's tail handler. Of the channel that is
 * written it touches the state. The session aligns channels to CACHE_LINE_BYTES.
 *
 *   | rarely used: 128 bytes | watcher, state: 64 bytes | pipeline, counters: 32 | tail handler ...
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
    struct event_load load;

    /* Watcher for both directions; io.data is the netloop. */
    alignas(CACHE_LINE_BYTES) struct ev_io io;
    uint64_t bytes_out;
    uint16_t flags;
    uint8_t phase;       /* enum channel_phase */
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

/* channel_net(ch): return the netloop of ${ch}. Thread: loop */
static inline struct netloop *channel_net(const struct channel *ch)
{
    return ch->io.data;
}

/*
 * channel_init(ch, net, fd):
 * Initialize ${ch} for the connected, non-blocking ${fd}.
 *
 * Thread: loop
 * Owns:   the channel owns ${fd}; ${ch} must live until HANDLER_CLOSED
 */
void channel_init(struct channel *ch, struct netloop *net, int fd);

/*
 * channel_nodelay(ch, o):
 * If ${o}, with which the descriptor was made, left that to ${ch}: set TCP_NODELAY before the
 * second send, as many connections have only one. The first is never delayed: Nagle's algorithm
 * holds a small segment back only behind another.
 *
 * Thread: loop
 * Source: Linux, tcp_nagle_check(), tcp_minshall_check()
 */
void channel_nodelay(struct channel *ch, const struct sock_options *o);

/* channel_start(ch): call active() of the pipeline and start reading. Thread: loop */
void channel_start(struct channel *ch);

/*
 * channel_write(ch, data, len):
 * Send ${data} through the pipeline.
 *
 * Thread: loop
 * Errors: 0; -EPIPE (sending has ended or failed); -ENOMEM (${ch} is aborted); both drop ${data}
 */
int channel_write(struct channel *ch, const void *data, size_t len) NODISCARD;

/*
 * channel_cork(ch) / channel_uncork(ch):
 * Collect writes in memory / send the collected writes; call this before returning to the loop.
 *
 * Thread: loop
 */
void channel_cork(struct channel *ch);
void channel_uncork(struct channel *ch);

/*
 * channel_shutdown_write(ch):
 * Send end of file through the pipeline, behind pending output. If the peer's end of file came
 * before, the channel ends.
 *
 * Thread: loop
 */
void channel_shutdown_write(struct channel *ch);

/*
 * channel_stop_reading(ch, why) / channel_resume_reading(ch, why) / channel_stopped(ch, why):
 * Add the reasons ${why} to stop reading / remove them / is one of ${why} set? Reading resumes when
 * no reason is left. A stopped channel notices resets (net/hangup.h), but end of file only with
 * channel_notice_end(). No-op while input is discarded.
 *
 * Thread: loop
 */
void channel_stop_reading(struct channel *ch, unsigned why);
void channel_resume_reading(struct channel *ch, unsigned why);
bool channel_stopped(const struct channel *ch, unsigned why);

/*
 * channel_meter(ch):
 * Call the tail's allow() before each read and its took() afterwards. When allow() returns 0,
 * reading stops with CHANNEL_STOP_METER. Discarded input is not metered.
 *
 * Thread: loop
 */
void channel_meter(struct channel *ch);

/*
 * channel_set_input_pending(ch, pending) / channel_input_pending(ch):
 * Count a handler that begins or ceases to hold input or end of file / is input pending? It is
 * while a handler holds it or CHANNEL_STOP_DELAY is set, until input is discarded; it keeps ${ch}
 * open even when both directions have ended.
 *
 * Thread: loop
 */
void channel_set_input_pending(struct channel *ch, bool pending);
bool channel_input_pending(const struct channel *ch);

/*
 * channel_pace_writing(ch, wait):
 * Make ${ch} unwritable while ${wait} is true; for a handler that limits the output rate.
 *
 * Thread: loop
 */
void channel_pace_writing(struct channel *ch, bool wait);

/*
 * channel_writable(ch):
 * False from when pending output exceeds the high water mark (0 while memory is scarce) until it
 * falls below the low one. Also false while spliced bytes are pending or channel_pace_writing()
 * waits.
 *
 * Thread: loop
 */
bool channel_writable(const struct channel *ch);

/*
 * channel_pending_bytes(ch) / channel_held_bytes(ch) / channel_unsent_bytes(ch):
 * Bytes of pending output / memory of buffer, pipe and handlers / bytes, pending or in the kernel,
 * that the peer has not acknowledged (a system call).
 *
 * Thread: loop
 */
size_t channel_pending_bytes(const struct channel *ch);
size_t channel_held_bytes(const struct channel *ch);
size_t channel_unsent_bytes(const struct channel *ch);

/*
 * channel_discard(ch, quiet_ns) / channel_discards(ch) / channel_input_cut(ch):
 * Discard input from now on / is input discarded, or has ${ch} ended? / was input lost? Lost means
 * unread, held by a handler, discarded, or cut by a reset before the peer's end of file. Before the
 * end of file channel_discard() also assumes a loss, of bytes on their way, if ${ch} has received
 * bytes and its last I/O is less than ${quiet_ns} ago.
 *
 * Thread: loop
 */
void channel_discard(struct channel *ch, int64_t quiet_ns);
bool channel_discards(const struct channel *ch);
bool channel_input_cut(const struct channel *ch);

/*
 * channel_end_input(ch, next):
 * Stop reading for good, as after the peer's end of file, and report HANDLER_EOF to ${next}. For a
 * handler whose protocol has its own end of file. No-op if input has ended or is discarded.
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
 *   CHANNEL_END_NOW         end of file at once, without TIME_WAIT (except if both ends of file
 *                           cross); later input gets a reset. For channels without pending bytes.
 *
 * The first three linger as long as the peer acknowledges bytes (struct channel_linger_conf). When
 * all bytes are acknowledged, FLUSH waits for the peer's end of file, and INPUT_ONLY for further
 * writes: for timeout_ns, at most 5 s. Then ${ch} is closed if all bytes and our end of file are
 * acknowledged, else aborted with -ETIMEDOUT. When out of memory, ${ch} is aborted at once.
 *
 * Thread: loop
 * Source: nginx lingering_close; RFC 1122 4.2.2.13
 */
void channel_end(struct channel *ch, unsigned how);

/*
 * channel_detach(ch):
 * Take the descriptor out of ${ch}, which must have no pending output and ends without
 * HANDLER_CLOSED. ${ch} must live until the next reap step.
 *
 * Thread: loop
 * Owns:   the caller owns the descriptor
 */
int channel_detach(struct channel *ch);

/*
 * channel_may_move(ch):
 * Can ${ch} leave its loop now? Not in a callback of ${ch}, and not if it ends.
 *
 * Thread: loop
 */
bool channel_may_move(const struct channel *ch);

/*
 * channel_leave_loop(ch) / channel_join_loop(ch, net):
 * Take ${ch}, which may move, off its loop, with pending bytes, filled pipe, and handlers / put it
 * on the loop of ${net}, which can watch its descriptor. Until then there are no other calls. libev
 * leaves the descriptor in the old epoll instance until it reports an event: one turn with nothing
 * to do.
 *
 * Thread: old loop / new loop
 * Errors: 0; -ENOMEM (${ch} is aborted)
 */
int channel_leave_loop(struct channel *ch) NODISCARD;
void channel_join_loop(struct channel *ch, struct netloop *net);

/*
 * channel_forget(ch, net):
 * Take the descriptor of ${ch}, which has left the loop of ${net}, out of that loop's epoll
 * instance.
 *
 * Thread: loop
 */
void channel_forget(struct channel *ch, struct netloop *net);

/* What a channel without handlers knows, besides its descriptor. */
struct channel_state {
    uint64_t bytes_in, bytes_out;
    int64_t last_io_at_ns;
    bool read_ended, eof_wanted, eof_sent;
    bool unwritable;
    const uint8_t *unsent;
    size_t n_unsent;
};

/*
 * channel_restore(ch, st) / channel_rejoin(ch):
 * Give the new ${ch} the state ${st}, without touching its descriptor / watch it, instead of
 * channel_start().
 *
 * Thread: loop
 * Owns:   copies the bytes
 * Errors: 0; -ENOMEM
 */
int channel_restore(struct channel *ch, const struct channel_state *st) NODISCARD;
void channel_rejoin(struct channel *ch);

/*
 * channel_restore_pipe(ch, fds, bytes):
 * Give the new ${ch} a filled pipe, to be sent before the bytes of channel_restore().
 *
 * Thread: loop
 * Owns, Errors: as pipe_pool_adopt()
 */
int channel_restore_pipe(struct channel *ch, const int *fds, size_t bytes) NODISCARD;

/*
 * channel_vanish(ch):
 * Close the descriptor by the end of the turn, and send nothing: another process has the
 * connection. HANDLER_CLOSED follows.
 *
 * channel_has_vanished(ch):
 * Is that so? Then its end is not the end of the connection.
 *
 * Thread: loop
 */
void channel_vanish(struct channel *ch);
bool channel_has_vanished(const struct channel *ch);

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
 * Report a reset, even before channel_start(), by HANDLER_BROKEN or HANDLER_CLOSED; also a unix
 * peer that closes without sending.
 *
 * Thread: loop
 */
void channel_notice_reset(struct channel *ch);

/*
 * channel_notice_end(ch):
 * channel_notice_reset(), and call the tail's end_noticed() once if the peer has ended its stream,
 * or ends it before ${ch} is read.
 *
 * Thread: loop
 */
void channel_notice_end(struct channel *ch);

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
 * Has input ended? / was our end of file sent, or has writing failed? / has ${ch} ended?
 *
 * Thread: loop
 */
bool channel_read_ended(const struct channel *ch);
bool channel_write_ended(const struct channel *ch);
bool channel_ended(const struct channel *ch);

#endif
