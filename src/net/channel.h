/*
 * net/channel: one connected stream socket on one loop.
 *
 * Reads go to the loop's scratch buffer and through the pipeline at once; writes go to the kernel at once, and
 * only what it does not take is kept. An idle channel owns no buffer.
 *
 * Water marks: when more than CHANNEL_HIGH_BYTES wait to be sent the channel is unwritable, until less than
 * CHANNEL_LOW_BYTES do; its `writable` event then tells. Writing to an unwritable channel still works; whoever
 * feeds it should pause instead (service/relay does).
 *
 * Life:
 *
 *   init -> start -> [ peer's eof ] [ our eof sent ] -> both: ended -> closed event -> memory free to reuse
 *                    any error, channel_abort() ------------^
 *
 * The descriptor is closed, and `closed` fired, in the reap step of the turn in which the channel ended; until
 * then calls on it are harmless and do nothing.
 */
#ifndef NET_CHANNEL_H
#define NET_CHANNEL_H

#include <ev.h>
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

/*
 * note: layout. At thousands of connections cache misses are the cost, not instructions. A read-write event
 * touches of its channel the two lines behind the seldom used one, and of the channel it writes to the first of
 * these only; `pipeline`, last, shares its line with the tail handler that the session puts right behind. The
 * session aligns channels to CACHE_LINE_BYTES.
 *
 *   | seldom: 64 bytes | watcher, state: 64 bytes | pipeline, counters: 32 | the session's tail handler ...
 */
struct channel {
    struct pipe *pipe; /* spliced bytes the peer did not take yet; they go before `out` */
    struct buffer out;
    struct channel *splice_to; /* NULL: bytes always take the way through the pipeline */
    struct task end;

    struct ev_io io; /* one watcher for both directions; its data is the netloop */
    uint64_t bytes_out;
    uint16_t flags;
    int16_t error;          /* why it ended: 0 or -errno */
    uint8_t watched;        /* the events `io` is started for */
    uint8_t transport : 4;  /* enum transport_kind */
    uint8_t read_paced : 1; /* reading waits for a handler's clock */
    uint8_t splice_mode;
    int8_t read_trend; /* > 0: large reads in a row; < 0: small ones while splicing */

    struct pipeline pipeline;
    uint64_t bytes_in;
    int64_t last_io_at_ns;
};

_Static_assert(offsetof(struct channel, io) == CACHE_LINE_BYTES, "see note: layout");
_Static_assert(offsetof(struct channel, pipeline) == 2 * CACHE_LINE_BYTES, "see note: layout");

/*
 * channel_net(ch):
 * What ${ch} shares with the other channels of its loop.
 *
 * Thread: loop of ${ch}
 * Errors: none
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
 * Errors: none
 */
void channel_init(struct channel *ch, struct netloop *net, int fd);

/*
 * channel_start(ch):
 * Fire `active` and begin to read. The pipeline has been set up.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_start(struct channel *ch);

/*
 * channel_write(ch, data, len):
 * Send ${data} through the pipeline, as far as the kernel takes it now; keep a copy of the rest and send it when
 * the socket is writable.
 *
 * Thread: loop of ${ch}
 * Owns:   nothing; ${data} may be reused when this returns
 * Units:  bytes
 * Errors: 0; -EPIPE (sending has ended or is broken; nothing kept); -ENOMEM (nothing kept, ${ch} is aborted)
 */
int channel_write(struct channel *ch, const void *data, size_t len) MUST_CHECK;

/*
 * channel_cork(ch) / channel_uncork(ch):
 * Keep what is written from here on, and send it together; before the caller returns to the loop.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_cork(struct channel *ch);
void channel_uncork(struct channel *ch);

/*
 * channel_shutdown_write(ch):
 * Through the pipeline: send what waits and then end of file. When the peer has sent its own, the channel ends.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_shutdown_write(struct channel *ch);

/*
 * channel_send(ch, data, len) / channel_send_eof(ch):
 * The socket's end of the pipeline: what channel_write() and channel_shutdown_write() come to. For handlers.
 *
 * Thread: loop of ${ch}
 * Errors: as channel_write()
 */
int channel_send(struct channel *ch, const void *data, size_t len) MUST_CHECK;
void channel_send_eof(struct channel *ch);

/*
 * channel_pause(ch) / channel_resume(ch):
 * Stop and go on reading. A paused channel notices neither end of file nor reset.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_pause(struct channel *ch);
void channel_resume(struct channel *ch);

/*
 * channel_hold(ch) / channel_release(ch):
 * The same for a handler before the tail: ${ch} is read when neither has stopped it.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_hold(struct channel *ch);
void channel_release(struct channel *ch);

/*
 * channel_meter(ch):
 * From now on ask the tail before each read how much may be read (handler_ops.allow) and tell it how much was. When that
 * is nothing, reading stops until channel_unthrottle(), whoever else has stopped it. What is only read to be thrown away
 * (channel_discard()) is not asked about.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_meter(struct channel *ch);

/*
 * channel_unthrottle(ch) / channel_throttled(ch):
 * More may be read of a metered channel; is it waiting for that?
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_unthrottle(struct channel *ch);
bool channel_throttled(const struct channel *ch);

/*
 * channel_reading(ch):
 * Is ${ch} to be read: not stopped by anyone, and not ended?
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
bool channel_reading(const struct channel *ch);

/*
 * channel_keep(ch) / channel_let_go(ch) / channel_kept(ch):
 * A handler has bytes or an end of file that it will pass on later, has passed all of it on; is there one that has?
 * As long as it has, the end of both directions does not end ${ch}.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_keep(struct channel *ch);
void channel_let_go(struct channel *ch);
bool channel_kept(const struct channel *ch);

/*
 * channel_pace_reading(ch, wait) / channel_pace_writing(ch, wait) / channel_paced(ch):
 * For the one handler that lets bytes pass by the clock: read nothing until then, whoever else wants to; have whoever
 * feeds ${ch} pause, as if it was unwritable, after which `writable` tells. Does either wait? While reading does, the end
 * of both directions does not end ${ch}: what the handler has, an end of file too, it passes on before it says false.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_pace_reading(struct channel *ch, bool wait);
void channel_pace_writing(struct channel *ch, bool wait);
bool channel_paced(const struct channel *ch);

/*
 * channel_writable(ch):
 * False from when more than the high water mark waits to be sent until less than the low one does, while spliced bytes
 * wait, and while what is to be sent is paced.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
bool channel_writable(const struct channel *ch);

/*
 * channel_pending_bytes(ch):
 * What waits to be sent.
 *
 * Thread: loop of ${ch}
 * Units:  bytes
 * Errors: none
 */
size_t channel_pending_bytes(const struct channel *ch);

/*
 * channel_held_bytes(ch):
 * The memory that what waits to be sent takes: the room of the buffer, and of a pipe all that it can hold; and what its
 * handlers keep.
 *
 * Thread: loop of ${ch}
 * Units:  bytes
 * Errors: none
 */
size_t channel_held_bytes(const struct channel *ch);

/*
 * channel_unsent_bytes(ch):
 * What the peer has not acknowledged: channel_pending_bytes() and what the kernel still holds. One system call.
 *
 * Thread: loop of ${ch}
 * Units:  bytes
 * Errors: none
 */
size_t channel_unsent_bytes(const struct channel *ch);

/*
 * channel_discard(ch) / channel_discards(ch):
 * Read on, but throw away what comes: nobody wants it any more. Is that so, or has ${ch} ended?
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_discard(struct channel *ch);
bool channel_discards(const struct channel *ch);

/*
 * channel_close(ch):
 * End without loss: send what waits, in handlers too, then end of file, and read and discard until the peer ends too.
 * Closing with unread input would make the kernel send a reset that overtakes our last bytes. How long the peer may take
 * is for the caller to bound with channel_finish().
 *
 * Thread: loop of ${ch}
 * Errors: none
 * Source: nginx lingering_close; RFC 1122 4.2.2.13
 */
void channel_close(struct channel *ch);

/*
 * channel_close_now(ch):
 * As channel_close(), but wait for nothing: the kernel goes on sending what it has, and then end of file; what waits here is
 * lost. For what nobody depends on.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_close_now(struct channel *ch);

/*
 * channel_reset(ch):
 * End visibly, but deliver what was read for it: at once if the peer has acknowledged everything. If not, nothing
 * more is written, input is discarded, and the caller looks again (channel_unsent_bytes()) and ends it with
 * channel_finish().
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_reset(struct channel *ch);

/*
 * channel_finish(ch):
 * End now what channel_close() or channel_reset() began: without a reset if the peer has got all and our end of
 * file, else with one.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_finish(struct channel *ch);

/*
 * channel_leave(ch):
 * End now: end of file to the peer, and nothing is left behind, no TIME_WAIT either (unless both ends of file cross). What
 * it still sends is answered with a reset.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_leave(struct channel *ch);

/*
 * channel_abort(ch, error):
 * End now and visibly: what waits is lost and the peer gets a reset. ${error} (0 or -errno) goes to `closed`.
 * A unix socket has no reset: its peer sees end of file, or ECONNRESET if it had sent what we did not read.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_abort(struct channel *ch, int error);

/*
 * channel_probe(ch):
 * Ask the kernel whether the peer has reset the connection, and abort it then. For a channel that reads nothing
 * (half-closed, or not started), since libev tells of errors only with what is read or written.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_probe(struct channel *ch);

/*
 * channel_peek(ch):
 * What waits to be read, without reading it: sock_peek(). For one who is about to send what he could not send again.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
enum sock_peek channel_peek(const struct channel *ch);

/*
 * channel_splice_to(ch, dst, mode):
 * Tell that all that ${ch} reads is written to ${dst}, on the same loop and unchanged, so that large reads may
 * take the short way through a pipe as ${mode} says. Handlers in either pipeline prevent it.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_splice_to(struct channel *ch, struct channel *dst, enum splice_mode mode);

/*
 * channel_read_ended(ch) / channel_write_ended(ch) / channel_ended(ch):
 * Has the peer sent end of file? Is ours sent? Is it all over?
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
bool channel_read_ended(const struct channel *ch);
bool channel_write_ended(const struct channel *ch);
bool channel_ended(const struct channel *ch);

/*
 * channel_resetting(ch) / channel_is_cut(ch):
 * Did channel_reset() leave something to wait for? Has ${ch} ended, visibly to its peer, before its time?
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
bool channel_resetting(const struct channel *ch);
bool channel_is_cut(const struct channel *ch);

/*
 * channel_set_handlers(ch, any):
 * For net/pipeline: are there handlers before the tail? Without them bytes take the short way.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_set_handlers(struct channel *ch, bool any);

/*
 * channel_can_splice_from(ch) / channel_can_splice_into(ch):
 * For net/splice: is what ${ch} reads large and wanted as it is; can bytes go to the kernel directly, since
 * none wait, no handler wants them and sending has not ended?
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
bool channel_can_splice_from(const struct channel *ch);
bool channel_can_splice_into(const struct channel *ch);

/*
 * channel_give_pipe(ch, p) / channel_write_failed(ch, error):
 * For net/splice: ${p} holds what the peer of ${ch} did not take; the peer of ${ch} takes nothing any more.
 *
 * Thread: loop of ${ch}
 * Owns:   the channel owns ${p}
 * Errors: none
 */
void channel_give_pipe(struct channel *ch, struct pipe *p);
void channel_write_failed(struct channel *ch, int error);

#endif
