/*
 * net/channel_internal: what the parts of a channel know of each other: channel.c (life and
 * reading), channel_write.c, channel_end.c and channel_linger.c. Private to net. Everything here
 * runs on the loop of the channel.
 */
#ifndef NET_CHANNEL_INTERNAL_H
#define NET_CHANNEL_INTERNAL_H

#include "net/channel.h"

enum channel_flag {
    CHANNEL_READ_ENDED = 1 << 0,   /* the peer's end of file was read */
    CHANNEL_DISCARD = 1 << 1,      /* what is read is not for the pipeline any more */
    CHANNEL_PENDING = 1 << 2,      /* bytes wait to be sent */
    CHANNEL_UNWRITABLE = 1 << 3,   /* above the high water mark */
    CHANNEL_EOF_WANTED = 1 << 4,   /* end of file is to follow what waits */
    CHANNEL_WRITE_ENDED = 1 << 5,  /* our end of file was sent */
    CHANNEL_WRITE_BROKEN = 1 << 6, /* the peer takes nothing more; what it sent is still read */
    CHANNEL_RESET = 1 << 7,        /* close with a reset */
    CHANNEL_ENDED = 1 << 8,        /* closed in this turn's reap step */
    CHANNEL_HANDLERS = 1 << 9,     /* the pipeline has more than its tail */
    CHANNEL_KEPT = 1 << 10,        /* a handler has not passed on all that was read */
    CHANNEL_METERED = 1 << 11,     /* the tail says how much may be read, and when */
    CHANNEL_WRITE_PACED = 1 << 12, /* what is to be sent waits for a handler's clock */
    CHANNEL_INPUT_CUT = 1 << 13,   /* see channel_input_cut() */
};

#define CHANNEL_NO_WRITE                                                               \
    (CHANNEL_EOF_WANTED | CHANNEL_WRITE_ENDED | CHANNEL_WRITE_BROKEN | CHANNEL_RESET | \
     CHANNEL_ENDED)

/*
 * channel_transport(ch):
 * How the channel's bytes get to and from its descriptor.
 *
 * Thread: loop of ${ch}
 */
static inline const struct transport *channel_transport(const struct channel *ch)
{
    return transport_table[ch->transport];
}

/*
 * channel_watch(ch):
 * Bring the watcher in line with what the channel waits for; costs nothing when that is unchanged.
 *
 * Thread: loop of ${ch}
 */
void channel_watch(struct channel *ch);

/*
 * channel_flush(ch):
 * The socket is writable: send what waits.
 *
 * Thread: loop of ${ch}
 */
void channel_flush(struct channel *ch);

/*
 * channel_drop_pending(ch):
 * Forget what waits to be sent.
 *
 * Thread: loop of ${ch}
 */
void channel_drop_pending(struct channel *ch);

/*
 * channel_retire(ch, error) / channel_retire_if_done(ch):
 * Close the channel in this turn's reap step; the same if nothing more can be read or written.
 *
 * Thread: loop of ${ch}
 */
void channel_retire(struct channel *ch, int error);
void channel_retire_if_done(struct channel *ch);

/*
 * channel_linger_begin(ch, bounded) / channel_linger_stop(ch) / channel_linger_free(ch):
 * Wait for the peer of ${ch} within ${ch}->linger_conf, max_ns only if ${bounded}, then retire or
 * abort ${ch}. Stop waiting; free the memory.
 *
 * Thread: loop of ${ch}
 * Errors: none; without memory ${ch} is aborted
 */
void channel_linger_begin(struct channel *ch, bool bounded);
void channel_linger_stop(struct channel *ch);
void channel_linger_free(struct channel *ch);

/*
 * channel_run_end(t):
 * The reap step of the channel whose `end` is ${t}: the last thing that happens to it.
 *
 * Thread: loop of the channel
 */
void channel_run_end(struct task *t);

/*
 * channel_reading(ch):
 * Is ${ch} to be read: not stopped for any reason, and not ended?
 *
 * Thread: loop of ${ch}
 */
static inline bool channel_reading(const struct channel *ch)
{
    return !(ch->flags & (CHANNEL_READ_ENDED | CHANNEL_ENDED)) && !ch->stopped;
}

/*
 * channel_set_handlers(ch, any):
 * For net/pipeline: are there handlers before the tail? Without them bytes take the short way.
 *
 * Thread: loop of ${ch}
 */
void channel_set_handlers(struct channel *ch, bool any);

/*
 * channel_can_splice_from(ch) / channel_can_splice_into(ch):
 * For net/splice: is what ${ch} reads large and wanted as it is; can bytes go to the kernel
 * directly, since none wait, no handler wants them and sending has not ended?
 *
 * Thread: loop of ${ch}
 */
bool channel_can_splice_from(const struct channel *ch);
bool channel_can_splice_into(const struct channel *ch);

/*
 * channel_give_pipe(ch, p) / channel_copy_pipe(ch) / channel_write_failed(ch, error):
 * For net/splice: ${p} holds what the peer of ${ch} did not take; keep that in memory and give the
 * pipe back (without memory ${ch} is aborted); the peer of ${ch} takes nothing any more.
 *
 * Thread: loop of ${ch}
 * Owns:   the channel owns ${p}
 */
void channel_give_pipe(struct channel *ch, struct pipe *p);
void channel_copy_pipe(struct channel *ch);
void channel_write_failed(struct channel *ch, int error);

#endif
