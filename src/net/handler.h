/*
 * net/handler: one step of a channel's pipeline, and event propagation.
 *
 * A NULL operation is skipped. The tail ends every inbound event, so it needs all inbound
 * operations except `burst` and `failed`.
 */
#ifndef NET_HANDLER_H
#define NET_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct channel;
struct handler;

/* Called on the channel's loop. */
struct handler_ops {
    const char *name;
    /* The channel begins to read. */
    void (*active)(struct handler *h);
    /* ${len} > 0 bytes received; ${data} is valid until this returns. */
    void (*read)(struct handler *h, const uint8_t *data, size_t len);
    /* A series of reads begins or ends: a hint to batch the writes they cause. Optional for all. */
    void (*burst)(struct handler *h, bool begins);
    /* End of file. Called once. */
    void (*eof)(struct handler *h);
    /*
     * An earlier handler cannot process the input: -EMSGSIZE (too long) or -EPROTO (malformed). No
     * more reads follow. Unhandled, it aborts the channel. Called once.
     */
    void (*failed)(struct handler *h, int error);
    /* Pending output fell below the low water mark, after it had exceeded the high one. */
    void (*writable)(struct handler *h);
    /* Writing failed with ${error}; earlier input is still read. Called once. */
    void (*broken)(struct handler *h, int error);
    /*
     * The descriptor is closed; ${error} is 0 or -errno. The last call, once, at the end of the
     * turn.
     */
    void (*closed)(struct handler *h, int error);
    /*
     * Tail of a metered channel (channel_meter()): how many of ${max} bytes may be read now; 0:
     * none yet.
     */
    size_t (*allow)(struct handler *h, size_t max);
    /* Tail: ${len} allowed bytes were read; ${drained}: the socket has no more. */
    void (*took)(struct handler *h, size_t len, bool drained);
    /* Send bytes; pass on with handler_write(). */
    int (*write)(struct handler *h, const void *data, size_t len);
    /* Send end of file; pass on with handler_shutdown_write(). May repeat. */
    void (*shutdown_write)(struct handler *h);
    /* Bytes of memory held and charged to net/memory_account. */
    size_t (*held)(const struct handler *h);
    /*
     * Memory is scarce: give up what is dispensable. Returns its size; freed at the end of the
     * turn.
     */
    size_t (*reclaim)(struct handler *h);
};

struct handler {
    const struct handler_ops *ops;
    struct channel *channel;
    struct handler *next;
    struct handler *prev;
};

/*
 * handler_active(h) / handler_read(h, data, len) / handler_burst(h, begins) / handler_eof(h) /
 * handler_failed(h, error) / handler_writable(h) / handler_broken(h, error) /
 * handler_closed(h, error):
 * Pass an inbound event to ${h}, or the next handler that implements it. Handlers pass events on
 * with ${h}->next.
 *
 * Thread: loop of the channel
 */
void handler_active(struct handler *h);
void handler_read(struct handler *h, const uint8_t *data, size_t len);
void handler_burst(struct handler *h, bool begins);
void handler_eof(struct handler *h);
void handler_failed(struct handler *h, int error);
void handler_writable(struct handler *h);
void handler_broken(struct handler *h, int error);
void handler_closed(struct handler *h, int error);

/*
 * handler_write(h, data, len) / handler_shutdown_write(h):
 * Pass an outbound operation to the previous handler that implements it, or the socket.
 *
 * Thread: loop of the channel
 * Errors: as channel_write()
 */
int handler_write(struct handler *h, const void *data, size_t len) NODISCARD;
void handler_shutdown_write(struct handler *h);

#endif
