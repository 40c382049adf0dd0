/*
 * net/channel_internal: what the parts of a channel know of each other: channel.c (life and reading),
 * channel_write.c, channel_end.c and channel_linger.c. Private to them. Everything here runs on the loop of the channel.
 */
#ifndef NET_CHANNEL_INTERNAL_H
#define NET_CHANNEL_INTERNAL_H

#include "net/channel.h"

enum channel_flag {
    CHANNEL_PAUSED = 1 << 0,       /* reading is paused */
    CHANNEL_READ_ENDED = 1 << 1,   /* the peer's end of file was read */
    CHANNEL_DISCARD = 1 << 2,      /* what is read is not for the pipeline any more */
    CHANNEL_PENDING = 1 << 3,      /* bytes wait to be sent */
    CHANNEL_UNWRITABLE = 1 << 4,   /* above the high water mark */
    CHANNEL_EOF_WANTED = 1 << 5,   /* end of file is to follow what waits */
    CHANNEL_WRITE_ENDED = 1 << 6,  /* our end of file was sent */
    CHANNEL_WRITE_BROKEN = 1 << 7, /* the peer takes nothing more; what it sent is still read */
    CHANNEL_RESET = 1 << 8,        /* close with a reset */
    CHANNEL_ENDED = 1 << 9,        /* closed in this turn's reap step */
    CHANNEL_HANDLERS = 1 << 10,    /* the pipeline has more than its tail */
    CHANNEL_HELD = 1 << 11,        /* reading is held back by a handler */
    CHANNEL_KEPT = 1 << 12,        /* a handler has not passed on all that was read */
    CHANNEL_METERED = 1 << 13,     /* the tail says how much may be read, and when */
    CHANNEL_THROTTLED = 1 << 14,   /* it has said: nothing now */
    CHANNEL_WRITE_PACED = 1 << 15, /* what is to be sent waits for a handler's clock */
    CHANNEL_INPUT_CUT = 1 << 16,   /* see channel_input_cut() */
};

#define CHANNEL_NO_READ \
    (CHANNEL_PAUSED | CHANNEL_HELD | CHANNEL_THROTTLED | CHANNEL_READ_ENDED | CHANNEL_ENDED)

#define CHANNEL_NO_WRITE                                                               \
    (CHANNEL_EOF_WANTED | CHANNEL_WRITE_ENDED | CHANNEL_WRITE_BROKEN | CHANNEL_RESET | \
     CHANNEL_ENDED)

/*
 * channel_transport(ch):
 * How the channel's bytes get to and from its descriptor.
 *
 * Thread: loop of ${ch}
 * Errors: none
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
 * Errors: none
 */
void channel_watch(struct channel *ch);

/*
 * channel_flush(ch):
 * The socket is writable: send what waits.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_flush(struct channel *ch);

/*
 * channel_drop_pending(ch):
 * Forget what waits to be sent.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_drop_pending(struct channel *ch);

/*
 * channel_retire(ch, error) / channel_retire_if_done(ch):
 * Have the channel closed in this turn's reap step; do so if nothing more can come or go.
 *
 * Thread: loop of ${ch}
 * Errors: none
 */
void channel_retire(struct channel *ch, int error);
void channel_retire_if_done(struct channel *ch);

/*
 * channel_linger_begin(ch, bounded) / channel_linger_stop(ch) / channel_linger_free(ch):
 * Wait for the peer of ${ch} within its bounds, the total one only if ${bounded}; ${ch} is retired or aborted then. Stop
 * that; free what it took.
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
 * Errors: none
 */
void channel_run_end(struct task *t);

#endif
