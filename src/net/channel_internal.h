/*
 * net/channel_internal: shared by channel*.c, handler.c, pipeline.c and splice.c.
 */
#ifndef NET_CHANNEL_INTERNAL_H
#define NET_CHANNEL_INTERNAL_H

#include "net/channel.h"

enum channel_flag {
    CHANNEL_READ_ENDED = 1 << 0, /* the peer has sent end of file */
    CHANNEL_DISCARD = 1 << 1,
    CHANNEL_PENDING = 1 << 2,
    CHANNEL_UNWRITABLE = 1 << 3,   /* above the high water mark */
    CHANNEL_EOF_WANTED = 1 << 4,   /* end of file follows pending output */
    CHANNEL_WRITE_ENDED = 1 << 5,  /* our end of file was sent */
    CHANNEL_WRITE_BROKEN = 1 << 6, /* writing failed; reading goes on */
    CHANNEL_RESET = 1 << 7,
    CHANNEL_ENDED = 1 << 8,        /* closed in the reap step */
    CHANNEL_HANDLERS = 1 << 9,     /* there are handlers before the tail */
    CHANNEL_METERED = 1 << 10,     /* the tail limits reads */
    CHANNEL_WRITE_PACED = 1 << 11, /* a handler delays output */
    CHANNEL_INPUT_CUT = 1 << 12,
};

#define CHANNEL_NO_WRITE                                                               \
    (CHANNEL_EOF_WANTED | CHANNEL_WRITE_ENDED | CHANNEL_WRITE_BROKEN | CHANNEL_RESET | \
     CHANNEL_ENDED)

/*
 * channel_send(ch, data, len) / channel_send_eof(ch):
 * For net/handler: write to the socket / send end of file.
 *
 * Thread: loop
 * Errors: as channel_write()
 */
int channel_send(struct channel *ch, const void *data, size_t len) NODISCARD;
void channel_send_eof(struct channel *ch);

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
 * channel_retire(ch, error) / channel_retire_if_done(ch):
 * Close ${ch} in the next reap step / the same, if both directions have ended.
 *
 * Thread: loop
 */
void channel_retire(struct channel *ch, int error);
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
 * Close the channel whose `end` is ${t}.
 *
 * Thread: loop
 */
void channel_run_end(struct task *t);

/*
 * channel_on_hangup(w):
 * Called when epoll(7) reports EPOLLERR or EPOLLHUP for the channel whose `hangup` is ${w}.
 *
 * Thread: loop
 */
void channel_on_hangup(struct hangup_watch *w);

/*
 * channel_reading(ch):
 *
 * Thread: loop
 */
static inline bool channel_reading(const struct channel *ch)
{
    return !(ch->flags & (CHANNEL_READ_ENDED | CHANNEL_ENDED)) && !ch->stopped;
}

/*
 * channel_set_handlers(ch, any):
 * For net/pipeline: set whether there are handlers before the tail. Without them, writes go
 * straight to the socket.
 *
 * Thread: loop
 */
void channel_set_handlers(struct channel *ch, bool any);

/*
 * channel_can_splice_from(ch) / channel_can_splice_into(ch):
 * For net/splice: may input be spliced (large reads, no handlers)? / may output be spliced (nothing
 * pending, no handlers, writing not ended)?
 *
 * Thread: loop
 */
bool channel_can_splice_from(const struct channel *ch);
bool channel_can_splice_into(const struct channel *ch);

/*
 * channel_write_broken(ch, error):
 * Stop writing because of ${error}; deliver unread input, then abort with ${error} unless -EPIPE.
 *
 * Thread: loop
 */
void channel_write_broken(struct channel *ch, int error);

/*
 * channel_give_pipe(ch, p) / channel_copy_pipe(ch) / channel_write_failed(ch, error):
 * For net/splice: keep ${p} as pending output / copy the bytes of that pipe to memory and return
 * the pipe to the pool (out of memory: abort ${ch}) / end writing because of ${error}.
 *
 * Thread: loop
 * Owns:   the channel owns ${p}
 */
void channel_give_pipe(struct channel *ch, struct pipe *p);
void channel_copy_pipe(struct channel *ch);
void channel_write_failed(struct channel *ch, int error);

#endif
