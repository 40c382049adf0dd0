/*
 * net/channel: one connected stream socket on one loop.
 *
 * Reads go to the loop's scratch buffer and through the pipeline at once; writes go to the kernel
 * at once, and only what it does not take is kept. An idle channel owns no buffer.
 *
 * Water marks: when more than CHANNEL_HIGH_BYTES wait to be sent the channel is unwritable, until
 * less than CHANNEL_LOW_BYTES do; its `writable` event then tells. Writing to an unwritable channel
 * still works; whoever feeds it should pause instead (service/relay does).
 *
 * Life:
 *
 *   init -> start -> [ peer's eof ] [ our eof sent ] -> both: ended -> closed event -> memory free
 *   to reuse
 *                    any error, channel_abort() ------------^
 *
 * The descriptor is closed, and `closed` fired, in the reap step of the turn in which the channel
 * ended; until then calls on it are harmless and do nothing.
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
#include "net/netloop.h"
#include "net/pipeline.h"
#include "net/sock.h"
#include "net/splice.h"
#include "net/transport.h"

/* Netty's defaults (WriteBufferWaterMark). */
#define CHANNEL_LOW_BYTES  (32 * 1024)
#define CHANNEL_HIGH_BYTES (64 * 1024)

struct channel_linger;

/* How long a channel that ends may wait for its peer; 0: no bound. */
struct channel_linger_conf {
    int64_t timeout_ns; /* without an acknowledgement, while some byte is not acknowledged */
    int64_t max_ns;     /* in all, counted from CHANNEL_END_BOUNDED */
};

/* Why a channel is not read. */
enum channel_stop {
    CHANNEL_STOP_RECEIVER = 1 << 0,  /* the receiver of its bytes is slow */
    CHANNEL_STOP_HANDLER = 1 << 1,   /* a handler before the tail is full */
    CHANNEL_STOP_BANDWIDTH = 1 << 2, /* the tail allows no bytes, see channel_meter() */
    CHANNEL_STOP_CLOCK = 1 << 3, /* a handler passes bytes on later; it keeps an end of file too */
    CHANNEL_STOP_RETRY = 1 << 4, /* another server is being connected */
    CHANNEL_STOP_ANY = 0xff,
};

/* Ways to end a channel, see channel_end(). */
enum channel_end_how {
    CHANNEL_END_FLUSH,
    CHANNEL_END_RESET,
    CHANNEL_END_INPUT,
    CHANNEL_END_NOW,
    CHANNEL_END_BOUNDED = 1 << 4, /* with one of the first three: within linger_conf->max_ns */
};

/*
 * note: layout. At thousands of connections cache misses are the cost, not instructions. A
 * read-write event touches of its channel the two lines behind the seldom used ones, and of the
 * channel it writes to the first of these only; `pipeline`, last, shares its line with the tail
 * handler that the session puts right behind. The session aligns channels to CACHE_LINE_BYTES.
 *
 *   | seldom: 128 bytes | watcher, state: 64 bytes | pipeline, counters: 32 | the session's tail
 *   handler ...
 */
struct channel {
    struct pipe *pipe; /* spliced bytes the peer did not take yet; they go before `out` */
    struct buffer out;
    struct channel *splice_to; /* NULL: bytes always take the way through the pipeline */
    struct task end;
    const struct channel_linger_conf *linger_conf; /* bounds of channel_end(); borrowed */
    struct channel_linger *linger;                 /* NULL unless channel_end() waits */
    int16_t error;                                 /* why it ended: 0 or -errno */

    /* One watcher for both directions; its data is the netloop. */
    alignas(CACHE_LINE_BYTES) struct ev_io io;
    uint64_t bytes_out;
    uint32_t flags;
    uint8_t watched;       /* the events `io` is started for */
    uint8_t stopped;       /* why it is not read: enum channel_stop */
    uint8_t empty_reads;   /* in a row, of a descriptor that is said to be readable */
    uint8_t transport : 2; /* enum transport_kind */
    uint8_t splice_mode : 2;
    int8_t read_trend : 4; /* > 0: large reads in a row; < 0: small ones while splicing */

    struct pipeline pipeline;
    uint64_t bytes_in;
    int64_t last_io_at_ns;
};

_Static_assert(offsetof(struct channel, io) == 2 * CACHE_LINE_BYTES, "see note: layout");
_Static_assert(offsetof(struct channel, pipeline) == 3 * CACHE_LINE_BYTES, "see note: layout");

/*
 * channel_net(ch):
 * What ${ch} shares with the other channels of its loop.
 *
 * Thread: loop of ${ch}
 */
static inline struct netloop *channel_net(const struct channel *ch)
{
    return ch->io.data;
}

/*
 * channel_init(ch, net, fd):
 * Take over the connected, non-blocking ${fd}. Nothing is read yet.
 *
 * Thread: loop of ${net}
 * Owns:   the channel has ${fd} from now on; ${ch} is the caller's until its closed event
 */
void channel_init(struct channel *ch, struct netloop *net, int fd);

/*
 * channel_start(ch):
 * Fire `active` and begin to read. The pipeline has been set up.
 *
 * Thread: loop of ${ch}
 */
void channel_start(struct channel *ch);

/*
 * channel_write(ch, data, len):
 * Send ${data} through the pipeline, as far as the kernel takes it now; keep a copy of the rest and
 * send it when the socket is writable.
 *
 * Thread: loop of ${ch}
 * Owns:   nothing; ${data} may be reused when this returns
 * Units:  bytes
 * Errors: 0; -EPIPE (sending has ended or is broken; nothing kept); -ENOMEM (nothing kept, ${ch} is
 *         aborted)
 */
int channel_write(struct channel *ch, const void *data, size_t len) NODISCARD;

/*
 * channel_cork(ch) / channel_uncork(ch):
 * Keep what is written from here on, and send it together; before the caller returns to the loop.
 *
 * Thread: loop of ${ch}
 */
void channel_cork(struct channel *ch);
void channel_uncork(struct channel *ch);

/*
 * channel_shutdown_write(ch):
 * Through the pipeline: send what waits and then end of file. When the peer has sent its own, the
 * channel ends.
 *
 * Thread: loop of ${ch}
 */
void channel_shutdown_write(struct channel *ch);

/*
 * channel_send(ch, data, len) / channel_send_eof(ch):
 * The socket's end of the pipeline: what channel_write() and channel_shutdown_write() come to. For
 * handlers.
 *
 * Thread: loop of ${ch}
 * Errors: as channel_write()
 */
int channel_send(struct channel *ch, const void *data, size_t len) NODISCARD;
void channel_send_eof(struct channel *ch);

/*
 * channel_stop_reading(ch, why) / channel_read_on(ch, why) / channel_stopped(ch, why):
 * Stop reading for the reasons ${why}; withdraw these reasons; is ${ch} stopped for any of them? It
 * is read when no reason is left. A stopped channel notices neither end of file nor reset. A
 * channel that discards its input is not stopped.
 *
 * Thread: loop of ${ch}
 */
void channel_stop_reading(struct channel *ch, unsigned why);
void channel_read_on(struct channel *ch, unsigned why);
bool channel_stopped(const struct channel *ch, unsigned why);

/*
 * channel_meter(ch):
 * From now on ask the tail before each read how much may be read (handler_ops.allow) and tell it
 * how much was. When that is nothing, reading stops for CHANNEL_STOP_BANDWIDTH. What is only read
 * to be thrown away (channel_discard()) is not asked about.
 *
 * Thread: loop of ${ch}
 */
void channel_meter(struct channel *ch);

/*
 * channel_keep(ch, keep) / channel_kept(ch):
 * A handler has bytes or an end of file that it will pass on later, or has passed on all of it.
 * Does a handler have some? As long as it has, the end of both directions does not end ${ch}.
 *
 * Thread: loop of ${ch}
 */
void channel_keep(struct channel *ch, bool keep);
bool channel_kept(const struct channel *ch);

/*
 * channel_pace_writing(ch, wait) / channel_paced(ch):
 * For the one handler that lets bytes pass by the clock: have the writers of ${ch} pause, as if it
 * was unwritable, after which `writable` tells. Does a handler's clock stop the writing, or the
 * reading (CHANNEL_STOP_CLOCK)?
 *
 * Thread: loop of ${ch}
 */
void channel_pace_writing(struct channel *ch, bool wait);
bool channel_paced(const struct channel *ch);

/*
 * channel_writable(ch):
 * False from when more than the high water mark waits to be sent until less than the low one does,
 * while spliced bytes wait, and while what is to be sent is paced.
 *
 * Thread: loop of ${ch}
 */
bool channel_writable(const struct channel *ch);

/*
 * channel_pending_bytes(ch):
 * What waits to be sent.
 *
 * Thread: loop of ${ch}
 * Units:  bytes
 */
size_t channel_pending_bytes(const struct channel *ch);

/*
 * channel_held_bytes(ch):
 * The memory that what waits to be sent takes: the room of the buffer, and of a pipe all that it
 * can hold; and what its handlers keep.
 *
 * Thread: loop of ${ch}
 * Units:  bytes
 */
size_t channel_held_bytes(const struct channel *ch);

/*
 * channel_unsent_bytes(ch):
 * What the peer has not acknowledged: channel_pending_bytes() and what the kernel still holds. One
 * system call.
 *
 * Thread: loop of ${ch}
 * Units:  bytes
 */
size_t channel_unsent_bytes(const struct channel *ch);

/*
 * channel_discard(ch, quiet_ns) / channel_discards(ch) / channel_input_cut(ch):
 * Read on, but throw away what comes. Is that so, or has ${ch} ended? Was the peer's stream cut by
 * it: bytes waited to be read or in a handler, some had come in the last ${quiet_ns}, some were
 * thrown away, or we have reset ${ch} before the peer's end of file?
 *
 * Thread: loop of ${ch}
 * Units:  ns
 */
void channel_discard(struct channel *ch, int64_t quiet_ns);
bool channel_discards(const struct channel *ch);
bool channel_input_cut(const struct channel *ch);

/*
 * channel_end(ch, how):
 * Our side ends the connection. `closed` tells when it has ended; a later call may only make it
 * more abrupt.
 *
 *   CHANNEL_END_FLUSH  send what waits, in handlers too, then end of file; discard input until the
 *                      peer's end of file. Closing with unread input would make the kernel send a
 *                      reset that overtakes our last bytes.
 *   CHANNEL_END_RESET  send what waits, then a reset as soon as the peer has acknowledged all;
 *                      discard input.
 *   CHANNEL_END_INPUT  discard input; what is still written is sent, until
 *                      channel_shutdown_write().
 *   CHANNEL_END_NOW    end of file at once, and nothing is left behind, no TIME_WAIT either (unless
 *                      both ends of file cross). What the peer still sends is answered with a
 *                      reset. Nothing waits to be sent.
 *
 * The first three wait for the peer (linger): as long as it acknowledges bytes, see struct
 * channel_linger_conf. When it has all of them, 5 s are left for its end of file, or for more to be
 * written. After that the channel is closed if the peer has all and our end of file, else aborted
 * with -ETIMEDOUT. Without memory for that ${ch} is aborted.
 *
 * Thread: loop of ${ch}
 * Source: nginx lingering_close; RFC 1122 4.2.2.13
 */
void channel_end(struct channel *ch, unsigned how);

/*
 * channel_abort(ch, error):
 * End now and visibly: what waits is lost and the peer gets a reset. ${error} (0 or -errno) goes to
 * `closed`. A unix socket has no reset: its peer sees end of file, or ECONNRESET if it had sent
 * what we did not read.
 *
 * Thread: loop of ${ch}
 */
void channel_abort(struct channel *ch, int error);

/*
 * channel_probe(ch):
 * Ask the kernel whether the peer has reset the connection: `broken` or `closed` follow then. For a
 * channel that reads nothing (half-closed, or not started), since libev tells of errors only with
 * what is read or written.
 *
 * Thread: loop of ${ch}
 */
void channel_probe(struct channel *ch);

/*
 * channel_peek(ch):
 * What waits to be read, without reading it: sock_peek(). For one who is about to send what he
 * could not send again.
 *
 * Thread: loop of ${ch}
 */
enum sock_peek channel_peek(const struct channel *ch);

/*
 * channel_splice_to(ch, dst, mode):
 * Tell that all that ${ch} reads is written to ${dst}, on the same loop and unchanged, so that
 * large reads may take the short way through a pipe as ${mode} says. Handlers in either pipeline
 * prevent it.
 *
 * Thread: loop of ${ch}
 */
void channel_splice_to(struct channel *ch, struct channel *dst, enum splice_mode mode);

/*
 * channel_read_ended(ch) / channel_write_ended(ch) / channel_ended(ch):
 * Has the peer sent end of file? Is ours sent, or can it not be sent any more? Is it all over?
 *
 * Thread: loop of ${ch}
 */
bool channel_read_ended(const struct channel *ch);
bool channel_write_ended(const struct channel *ch);
bool channel_ended(const struct channel *ch);

#endif
