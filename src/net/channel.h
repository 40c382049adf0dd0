/*
 * net/channel: a connected stream socket on a loop.
 *
 * Reads pass through the loop's scratch buffer and the pipeline; writes buffer only what the kernel
 * does not take.
 *
 * Water marks: above CHANNEL_HIGH_BYTES of pending output the channel is unwritable; below
 * CHANNEL_LOW_BYTES it fires `writable`. The source should pause, but may write.
 *
 *   init -> start -> [ peer's eof ] [ our eof sent ] -> both: ended -> HANDLER_CLOSED -> free
 *                    any error, channel_abort() --------------^
 *
 * The turn's reap step closes the descriptor and reports HANDLER_CLOSED. Calls on an ended
 * channel are no-ops.
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
#include "net/transport.h"

/* Netty's defaults (WriteBufferWaterMark). */
#define CHANNEL_LOW_BYTES  (32 * 1024)
#define CHANNEL_HIGH_BYTES (64 * 1024)

struct channel_linger;

/* How long an ending channel waits for its peer; 0: unbounded. */
struct channel_linger_conf {
    int64_t timeout_ns; /* longest time without progress while bytes are unacknowledged */
    int64_t max_ns;     /* in total, with CHANNEL_END_BOUNDED */
};

enum channel_stop {
    CHANNEL_STOP_RECEIVER = 1 << 0, /* slow receiver */
    CHANNEL_STOP_HANDLER = 1 << 1,  /* a handler is full */
    CHANNEL_STOP_METER = 1 << 2,    /* see channel_meter() */
    CHANNEL_STOP_DELAY = 1 << 3,    /* a handler delays input, end of file included */
    CHANNEL_STOP_RETRY = 1 << 4,    /* connecting to another server */
    CHANNEL_STOP_ANY = 0xff,
};

enum channel_end_how {
    CHANNEL_END_FLUSH,
    CHANNEL_END_RESET,
    CHANNEL_END_INPUT_ONLY,
    CHANNEL_END_NOW,
    CHANNEL_END_BOUNDED = 1 << 4, /* added to one of the first three: within linger_conf->max_ns */
};

/*
 * note: layout. Cache misses dominate. An event touches two lines of the channel it reads (state,
 * and pipeline with the session's tail handler) and only the state line of the channel it writes.
 * The session aligns channels to CACHE_LINE_BYTES.
 *
 *   | seldom: 128 bytes | watcher, state: 64 bytes | pipeline, counters: 32 | tail handler ...
 */
struct channel {
    struct pipe *pipe; /* spliced bytes to send, before `out` */
    struct buffer out;
    struct channel *splice_to; /* NULL: never splice */
    struct task end;
    const struct channel_linger_conf *linger_conf; /* borrowed */
    struct channel_linger *linger;                 /* NULL: channel_end() does not wait */
    struct hangup_watch hangup;                    /* listens while `io` does not */
    int16_t error;                                 /* 0 or -errno */
    uint8_t input_pending;                         /* handlers that hold input */

    /* For both directions; its data is the netloop. */
    alignas(CACHE_LINE_BYTES) struct ev_io io;
    uint64_t bytes_out;
    uint32_t flags;
    uint8_t watched;       /* events of `io` */
    uint8_t stopped;       /* enum channel_stop */
    uint8_t empty_reads;   /* in a row, though readable */
    uint8_t transport : 2; /* enum transport_kind */
    uint8_t splice_mode : 2;
    int8_t read_trend : 4; /* > 0: large reads in a row; < 0: small moves by splice */

    struct pipeline pipeline;
    uint64_t bytes_in;
    int64_t last_io_at_ns;
};

_Static_assert(offsetof(struct channel, io) == 2 * CACHE_LINE_BYTES, "see note: layout");
_Static_assert(offsetof(struct channel, pipeline) == 3 * CACHE_LINE_BYTES, "see note: layout");

/*
 * channel_net(ch):
 * The netloop of ${ch}.
 *
 * Thread: loop of ${ch}
 */
static inline struct netloop *channel_net(const struct channel *ch)
{
    return ch->io.data;
}

/*
 * channel_init(ch, net, fd):
 * Take over the connected, non-blocking ${fd}.
 *
 * Thread: loop of ${net}
 * Owns:   the channel owns ${fd}; ${ch} must live until HANDLER_CLOSED
 */
void channel_init(struct channel *ch, struct netloop *net, int fd);

/*
 * channel_start(ch):
 * Fire `active` and start reading.
 *
 * Thread: loop of ${ch}
 */
void channel_start(struct channel *ch);

/*
 * channel_write(ch, data, len):
 * Send ${data} through the pipeline.
 *
 * Thread: loop of ${ch}
 * Errors: 0; -EPIPE (sending has ended or failed; nothing kept); -ENOMEM (nothing kept, ${ch} is
 *         aborted)
 */
int channel_write(struct channel *ch, const void *data, size_t len) NODISCARD;

/*
 * channel_cork(ch) / channel_uncork(ch):
 * Batch writes / send the batch, before returning to the loop.
 *
 * Thread: loop of ${ch}
 */
void channel_cork(struct channel *ch);
void channel_uncork(struct channel *ch);

/*
 * channel_shutdown_write(ch):
 * Send end of file through the pipeline, behind pending output. After the peer's end of file this
 * ends the channel.
 *
 * Thread: loop of ${ch}
 */
void channel_shutdown_write(struct channel *ch);

/*
 * channel_stop_reading(ch, why) / channel_resume_reading(ch, why) / channel_stopped(ch, why):
 * Add reasons to stop reading; remove them; is any set? Without reasons reading resumes. A stopped
 * channel notices no end of file, only a reset (net/hangup.h). No-op while discarding.
 *
 * Thread: loop of ${ch}
 */
void channel_stop_reading(struct channel *ch, unsigned why);
void channel_resume_reading(struct channel *ch, unsigned why);
bool channel_stopped(const struct channel *ch, unsigned why);

/*
 * channel_meter(ch):
 * Before each read ask the tail's `allow`, afterwards call its `took`. At 0, stop with
 * CHANNEL_STOP_METER. Discarded input is not metered.
 *
 * Thread: loop of ${ch}
 */
void channel_meter(struct channel *ch);

/*
 * channel_set_input_pending(ch, pending) / channel_input_pending(ch):
 * Count a handler that holds input or end of file in or out. Is input held, or delayed by
 * CHANNEL_STOP_DELAY, and not discarded? Then the end of both directions does not end ${ch}.
 *
 * Thread: loop of ${ch}
 */
void channel_set_input_pending(struct channel *ch, bool pending);
bool channel_input_pending(const struct channel *ch);

/*
 * channel_pace_writing(ch, wait):
 * For a rate-limiting handler: make ${ch} unwritable, until `writable`.
 *
 * Thread: loop of ${ch}
 */
void channel_pace_writing(struct channel *ch, bool wait);

/*
 * channel_writable(ch):
 * False from above the high water mark (memory scarce: with any pending output) until below the low
 * one, with pending spliced bytes, or while paced.
 *
 * Thread: loop of ${ch}
 */
bool channel_writable(const struct channel *ch);

/*
 * channel_pending_bytes(ch) / channel_held_bytes(ch) / channel_unsent_bytes(ch):
 * Pending output; memory of buffer, pipe and handlers; bytes not acknowledged, pending or in the
 * kernel (one system call).
 *
 * Thread: loop of ${ch}
 */
size_t channel_pending_bytes(const struct channel *ch);

size_t channel_held_bytes(const struct channel *ch);

size_t channel_unsent_bytes(const struct channel *ch);

/*
 * channel_discard(ch, quiet_ns) / channel_discards(ch) / channel_input_cut(ch):
 * Discard input from now on. Is input discarded, or has ${ch} ended? Was input lost: unread, held
 * by a handler, discarded, or reset before the peer's end of file? More input is expected, and so
 * lost, if some came and ${ch} read, or sent pending output, in the last ${quiet_ns}.
 *
 * Thread: loop of ${ch}
 */
void channel_discard(struct channel *ch, int64_t quiet_ns);
bool channel_discards(const struct channel *ch);
bool channel_input_cut(const struct channel *ch);

/*
 * channel_end(ch, how):
 * Close the connection; HANDLER_CLOSED follows. A later call can only be more abrupt.
 *
 *   CHANNEL_END_FLUSH       send pending bytes, in handlers too, then end of file; discard input
 *                           until the peer's. Closing with unread input would send a reset that
 *                           overtakes our last bytes.
 *   CHANNEL_END_RESET       send pending bytes; when all are acknowledged, reset (error 0).
 *                           Discard input.
 *   CHANNEL_END_INPUT_ONLY  discard input; write on until channel_shutdown_write().
 *   CHANNEL_END_NOW         end of file at once, without TIME_WAIT (unless both ends of file
 *                           cross); later input gets a reset. For channels without pending bytes.
 *
 * The first three linger as long as the peer acknowledges bytes (struct channel_linger_conf). When
 * all are acknowledged, FLUSH waits for the peer's end of file, and INPUT_ONLY for further writes,
 * for timeout_ns but at most 5 s; RESET does not wait. Then ${ch} is closed if all is acknowledged,
 * our end of file too, else aborted with -ETIMEDOUT. Without memory it is aborted.
 *
 * Thread: loop of ${ch}
 * Source: nginx lingering_close; RFC 1122 4.2.2.13
 */
void channel_end(struct channel *ch, unsigned how);

/*
 * channel_abort(ch, error):
 * Reset the connection and lose pending bytes; HANDLER_CLOSED gets ${error} (0 or -errno). A
 * unix peer sees end of file, or ECONNRESET if input is unread.
 *
 * Thread: loop of ${ch}
 */
void channel_abort(struct channel *ch, int error);

/*
 * channel_notice_reset(ch):
 * Report, even before channel_start(), a reset, and a unix peer that closes without sending:
 * HANDLER_BROKEN or HANDLER_CLOSED follow.
 *
 * Thread: loop of ${ch}
 */
void channel_notice_reset(struct channel *ch);

/*
 * channel_splice_to(ch, dst, mode):
 * All input of ${ch} goes unchanged to ${dst}, on the same loop: splice large reads as ${mode}
 * says. Handlers in either pipeline prevent it.
 *
 * Thread: loop of ${ch}
 */
void channel_splice_to(struct channel *ch, struct channel *dst, enum splice_mode mode);

/*
 * channel_read_ended(ch) / channel_write_ended(ch) / channel_ended(ch):
 * Has the peer sent end of file? Have we, or has writing failed? Is it over?
 *
 * Thread: loop of ${ch}
 */
bool channel_read_ended(const struct channel *ch);
bool channel_write_ended(const struct channel *ch);
bool channel_ended(const struct channel *ch);

#endif
