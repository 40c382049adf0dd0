/*
 * net/handler: one step of a channel's pipeline.
 *
 * NULL operations are skipped. The tail needs all inbound operations except `burst`, `end_noticed`
 * and `closing`.
 */
#ifndef NET_HANDLER_H
#define NET_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct channel;
struct handler;

/* What has ended. Each end is reported at most once. */
enum handler_end {
    /* Input, by the peer's end of file; no input is lost. */
    HANDLER_EOF,
    /*
     * Input, rejected by an earlier handler: -EMSGSIZE (too long), -EPROTO (malformed), -ECONNRESET
     * (cut off), or -EBADMSG (TLS failed: an alert was received, or sent if it could be).
     */
    HANDLER_REJECTED,
    /* Output: writing failed with -errno. Input already received is still read. */
    HANDLER_BROKEN,
    /* The channel, with 0 or -errno (reset, failure): the last event, in a reap step. */
    HANDLER_CLOSED,
};

#define HANDLER_STATE_VALUES 6

/* What a handler knows of its channel, for another process. */
struct handler_state {
    const char *name; /* of its operations */
    int64_t values[HANDLER_STATE_VALUES];
    const uint8_t *bytes; /* part of the input */
    size_t n;
};

/* Called on the channel's loop. */
struct handler_ops {
    const char *name;
    /* The channel starts reading. */
    void (*active)(struct handler *h);
    /* ${len} > 0; ${data} is valid until this returns. */
    void (*read)(struct handler *h, const uint8_t *data, size_t len);
    /* A series of reads begins or ends: a hint to batch writes. */
    void (*burst)(struct handler *h, bool begins);
    /* After the end of input read() is not called; after the end of output nothing is sent. */
    void (*ended)(struct handler *h, enum handler_end what, int error);
    /* channel_writable() is true again. */
    void (*writable)(struct handler *h);
    /* For the tail, with channel_meter(): how many of ${max} bytes to read now; 0: stop reading. */
    size_t (*allow)(struct handler *h, size_t max);
    /*
     * For the tail, with channel_meter(): ${len} bytes were received. read() follows, unless they
     * were spliced. ${drained}: no more input now.
     */
    void (*took)(struct handler *h, size_t len, bool drained);
    /*
     * For the tail, optional: the peer has ended its stream, which is not read; see
     * channel_notice_end(). Also called when both directions have ended.
     */
    void (*end_noticed)(struct handler *h);
    /*
     * For the tail, optional: the channel is about to close its descriptor, which can still be
     * asked (getsockopt(2)). HANDLER_CLOSED follows.
     */
    void (*closing)(struct handler *h);
    /* Send ${data}: pass it on with handler_write(). */
    int (*write)(struct handler *h, const void *data, size_t len);
    /* Send end of file: pass it on with handler_shutdown_write(). May be called again. */
    void (*shutdown_write)(struct handler *h);
    /* Return the memory that the handler has charged to net/memory_account. */
    size_t (*held)(const struct handler *h);
    /* Memory is scarce: free dispensable memory at the end of the turn; returns its size now. */
    size_t (*reclaim)(struct handler *h);
    /* May the channel leave its loop now? NULL: yes. */
    bool (*may_move)(const struct handler *h);
    /*
     * The channel leaves its loop, or has joined another one; suspend timers, or resume them. No
     * other call comes in between.
     */
    void (*leave_loop)(struct handler *h);
    void (*join_loop)(struct handler *h);
    /*
     * Fill in values and bytes of ${st}, which are zero. NULL: the channel cannot go to another
     * process. Errors: 0; -EBUSY (not now)
     */
    int (*save)(const struct handler *h, struct handler_state *st);
    /*
     * Behind active(), in another process: continue ${st}, which is not trusted. Errors: 0;
     * -EINVAL (impossible); -ESTALE (of other settings); -ENOMEM
     */
    int (*restore)(struct handler *h, const struct handler_state *st);
};

struct handler {
    const struct handler_ops *ops;
    struct channel *channel;
    struct handler *next;
    struct handler *prev;
};

/*
 * handler_active(h) / handler_read(h, data, len) / handler_burst(h, begins) /
 * handler_ended(h, what, error) / handler_writable(h):
 * Pass an inbound event to ${h}, or else to the next handler that implements the operation. A
 * handler calls this with its h->next.
 *
 * Thread: loop
 */
void handler_active(struct handler *h);
void handler_read(struct handler *h, const uint8_t *data, size_t len);
void handler_burst(struct handler *h, bool begins);
void handler_ended(struct handler *h, enum handler_end what, int error);
void handler_writable(struct handler *h);

/*
 * handler_write(h, data, len) / handler_shutdown_write(h):
 * Pass output of ${h} to the previous handler that implements the operation, or else to the socket.
 *
 * Thread: loop
 * Errors: as channel_write()
 */
int handler_write(struct handler *h, const void *data, size_t len) NODISCARD;
void handler_shutdown_write(struct handler *h);

/*
 * handler_save_nothing(h, st) / handler_restore_nothing(h, st):
 * Operations of a handler that keeps nothing / -EINVAL: ${st} has something.
 */
int handler_save_nothing(const struct handler *h, struct handler_state *st);
int handler_restore_nothing(struct handler *h, const struct handler_state *st);

#endif
