/*
 * net/handler: one step of a channel's pipeline, and how events pass from step to step.
 *
 * A handler is embedded in whoever has its state. An operation that is NULL is passed over. The
 * tail ends every inbound event, so it must have all the inbound operations but `burst` and
 * `failed`.
 */
#ifndef NET_HANDLER_H
#define NET_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct channel;
struct handler;

/* Every operation is called on the loop of the channel. */
struct handler_ops {
    const char *name;
    /* The channel begins to read. */
    void (*active)(struct handler *h);
    /* ${len} > 0 bytes came; ${data} lasts until this returns. */
    void (*read)(struct handler *h, const uint8_t *data, size_t len);
    /*
     * Reads follow each other from here (${begins}) up to here: whoever sends what he reads may
     * send it together. Without anyone who minds it is nothing.
     */
    void (*burst)(struct handler *h, bool begins);
    /* The peer sends no more. Called once. */
    void (*eof)(struct handler *h);
    /*
     * A handler before cannot go on with what came: ${error} is -EMSGSIZE (too much) or -EPROTO
     * (not as it has to be). Nothing more will be read. Without anyone who takes it the channel is
     * aborted. Called once.
     */
    void (*failed)(struct handler *h, int error);
    /*
     * What was waiting to be sent fell below the low water mark after it had risen above the high
     * one.
     */
    void (*writable)(struct handler *h);
    /*
     * The peer takes no more bytes (${error} says why); what it sent before is still read. Called
     * once.
     */
    void (*broken)(struct handler *h, int error);
    /*
     * The descriptor is closed; ${error} is 0 or -errno. Called once, at the end of the turn, and
     * last.
     */
    void (*closed)(struct handler *h, int error);
    /*
     * The tail's, of a metered channel (channel_meter()): how many of ${max} bytes may be read now;
     * 0: none so far.
     */
    size_t (*allow)(struct handler *h, size_t max);
    /*
     * The tail's: of what was allowed so many bytes were read; ${drained}: there are no more right
     * now.
     */
    void (*took)(struct handler *h, size_t len, bool drained);
    /* Bytes are to be sent; pass on with handler_write(). */
    int (*write)(struct handler *h, const void *data, size_t len);
    /* Nothing more will be sent; pass on with handler_shutdown_write(). May be said again. */
    void (*shutdown_write)(struct handler *h);
    /* The memory of bytes that it keeps and counts in net/memory_account. */
    size_t (*held)(const struct handler *h);
    /*
     * Memory is scarce: give up what the connection can do without. How much that was; the end of
     * the turn frees it.
     */
    size_t (*reclaim)(struct handler *h);
};

struct handler {
    const struct handler_ops *ops;
    struct channel *channel;
    struct handler *next; /* towards the tail */
    struct handler *prev; /* towards the head */
};

/*
 * handler_active(h) / handler_read(h, data, len) / handler_burst(h, begins) / handler_eof(h) /
 * handler_failed(h, error) /
 * handler_writable(h) / handler_broken(h, error) / handler_closed(h, error):
 * Give an inbound event to the first handler at or behind ${h} that takes it. A handler passes an
 * event on with ${h}->next.
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
 * Give an outbound operation to the first handler before ${h} that takes it, or else to the socket.
 *
 * Thread: loop of the channel
 * Errors: as channel_write()
 */
int handler_write(struct handler *h, const void *data, size_t len) NODISCARD;
void handler_shutdown_write(struct handler *h);

#endif
