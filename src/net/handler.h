/*
 * net/handler: one step of a channel's pipeline.
 *
 * NULL operations are skipped. The tail needs all inbound operations except `burst` and `failed`.
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
    /* The channel starts reading. */
    void (*active)(struct handler *h);
    /* ${len} > 0; ${data} is valid until this returns. */
    void (*read)(struct handler *h, const uint8_t *data, size_t len);
    /* A series of reads begins or ends: a hint to batch writes. Always optional. */
    void (*burst)(struct handler *h, bool begins);
    /* End of file. Once. */
    void (*eof)(struct handler *h);
    /*
     * An earlier handler rejects the input: -EMSGSIZE (too long) or -EPROTO (malformed). No reads
     * follow. Unhandled: the channel aborts. Once.
     */
    void (*failed)(struct handler *h, int error);
    /* channel_writable() again: output fell below the low water mark, or pacing ended. */
    void (*writable)(struct handler *h);
    /* Writing failed; earlier input is still read. Once. */
    void (*broken)(struct handler *h, int error);
    /* Closed, with 0 or -errno. The last call, once, at the end of the turn. */
    void (*closed)(struct handler *h, int error);
    /* Tail, if metered (channel_meter()): bytes of ${max} to read now; 0: none yet. */
    size_t (*allow)(struct handler *h, size_t max);
    /*
     * Tail, if metered: bytes read, before `read` of them; spliced ones are sent already.
     * ${drained}: no more now.
     */
    void (*took)(struct handler *h, size_t len, bool drained);
    /* Output; pass on with handler_write(). */
    int (*write)(struct handler *h, const void *data, size_t len);
    /* Send end of file; pass on with handler_shutdown_write(). May repeat. */
    void (*shutdown_write)(struct handler *h);
    /* Bytes held, as charged to net/memory_account. */
    size_t (*held)(const struct handler *h);
    /*
     * Memory is scarce: give up what is dispensable, freed at the end of the turn; returns its
     * size.
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
 * Pass an inbound event to ${h}, or else the next handler that implements it. Handlers pass
 * ${h}->next.
 *
 * Thread: the channel's loop
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
 * Pass output to the previous handler that implements it, or else to the socket.
 *
 * Thread: the channel's loop
 * Errors: as channel_write()
 */
int handler_write(struct handler *h, const void *data, size_t len) NODISCARD;
void handler_shutdown_write(struct handler *h);

#endif
