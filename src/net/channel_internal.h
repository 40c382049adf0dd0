/*
 * net/channel_internal: operations and flags shared by channel*.c, handler.c, pipeline.c and
 * splice.c.
 */
#ifndef NET_CHANNEL_INTERNAL_H
#define NET_CHANNEL_INTERNAL_H

#include "net/channel.h"

enum channel_flag {
    CHANNEL_READ_ENDED = 1 << 0, /* input has ended, see channel_end_input() */
    CHANNEL_DISCARD = 1 << 1,
    CHANNEL_PENDING = 1 << 2,
    CHANNEL_UNWRITABLE = 1 << 3,  /* see channel_writable() */
    CHANNEL_HANDLERS = 1 << 4,    /* there are handlers before the tail */
    CHANNEL_METERED = 1 << 5,     /* the tail limits reads */
    CHANNEL_WRITE_PACED = 1 << 6, /* see channel_pace_writing() */
    CHANNEL_INPUT_CUT = 1 << 7,
    CHANNEL_VANISHED = 1 << 8,    /* see channel_vanish() */
    CHANNEL_NODELAY_DUE = 1 << 9, /* see channel_nodelay() */
};

/* channel_enter(ch, phase): change the phase of ${ch}, to a later one. Thread: loop */
void channel_enter(struct channel *ch, enum channel_phase phase);

/*
 * channel_send(ch, data, len) / channel_send_eof(ch):
 * Write to the socket, behind pending output / send end of file. For net/handler.
 *
 * Thread: loop
 * Errors: as channel_write()
 */
int channel_send(struct channel *ch, const void *data, size_t len) NODISCARD;
void channel_send_eof(struct channel *ch);

/*
 * channel_set_nodelay(ch) / channel_before_send(ch):
 * Set TCP_NODELAY / set it if it is due, see channel_nodelay().
 *
 * Thread: loop
 */
void channel_set_nodelay(struct channel *ch);

static inline void channel_before_send(struct channel *ch)
{
    if (__builtin_expect(ch->flags & CHANNEL_NODELAY_DUE, 0) && ch->bytes_out > 0)
        channel_set_nodelay(ch);
}

/*
 * channel_watch(ch) / channel_flush(ch) / channel_drop_pending(ch):
 * Update the watcher, at no cost if unchanged / send pending output / drop pending output.
 *
 * Thread: loop
 */
void channel_watch(struct channel *ch);
void channel_flush(struct channel *ch);
void channel_drop_pending(struct channel *ch);

/*
 * channel_retire(ch, phase, error) / channel_retire_if_done(ch):
 * Enter ${phase} (CHANNEL_CLOSED or CHANNEL_ABORTED), to be closed in the next reap step / close
 * ${ch} if nothing is left to deliver or to send.
 *
 * Thread: loop
 */
void channel_retire(struct channel *ch, enum channel_phase phase, int error);
void channel_retire_if_done(struct channel *ch);

/*
 * channel_linger_begin(ch, bounded) / channel_linger_end(ch):
 * Wait for the peer as ch->linger_conf says (max_ns only if ${bounded}), then retire or abort ${ch}
 * / stop waiting.
 *
 * Thread: loop
 */
void channel_linger_begin(struct channel *ch, bool bounded);
void channel_linger_end(struct channel *ch);

/*
 * channel_run_end(t):
 * Close the channel whose `end` is ${t}, and report HANDLER_CLOSED.
 *
 * Thread: loop
 */
void channel_run_end(struct task *t);

/*
 * channel_on_hangup(w):
 * Handle EPOLLERR, EPOLLHUP or EPOLLRDHUP of the channel whose `hangup` is ${w}.
 *
 * Thread: loop
 */
void channel_on_hangup(struct hangup_watch *w);

/* channel_reading(ch): should ${ch} be watched for input? Thread: loop */
static inline bool channel_reading(const struct channel *ch)
{
    return !(ch->flags & CHANNEL_READ_ENDED) && ch->phase < CHANNEL_CLOSED && !ch->stopped;
}

/*
 * channel_set_handlers(ch, any):
 * Set whether there are handlers before the tail. For net/pipeline.
 *
 * Thread: loop
 */
void channel_set_handlers(struct channel *ch, bool any);

/*
 * channel_can_splice_from(ch) / channel_can_splice_into(ch):
 * May input / may output of ${ch} be spliced? For net/splice.
 *
 * Thread: loop
 */
bool channel_can_splice_from(const struct channel *ch);
bool channel_can_splice_into(const struct channel *ch);

/*
 * channel_write_broken(ch, error):
 * Drop pending output and report HANDLER_BROKEN; reading goes on. At end of file ${ch} is aborted
 * with ${error}, unless -EPIPE.
 *
 * Thread: loop
 */
void channel_write_broken(struct channel *ch, int error);

/*
 * channel_give_pipe(ch, p) / channel_copy_pipe(ch) / channel_write_failed(ch, error):
 * Keep ${p} as pending output / copy the bytes of that pipe to memory and return the pipe to the
 * pool (out of memory: abort ${ch}) / end writing after ${error}: channel_write_broken() for -EPIPE
 * and -ECONNRESET, else abort. For net/splice.
 *
 * Thread: loop
 * Owns:   the channel owns ${p}
 */
void channel_give_pipe(struct channel *ch, struct pipe *p);
void channel_copy_pipe(struct channel *ch);
void channel_write_failed(struct channel *ch, int error);

#endif
