/*
 * handlers/hello_handler: reads the first bytes of a client, with the ClientHello of TLS that is
 * passed through, as the first handler of its channel (handlers/preface_handler).
 */
#ifndef HANDLERS_HELLO_HANDLER_H
#define HANDLERS_HELLO_HANDLER_H

#include "handlers/preface_handler.h"
#include "tls/client_hello.h"

struct hello_handler;

/* What a client has sent so far. */
struct hello_handler_bytes {
    const uint8_t *at;
    size_t n;
    bool is_complete; /* end of file follows, perhaps before any byte */
};

struct hello_handler_ops {
    /*
     * Decide about the bytes so far and hh->scanned. Returns 0; -EAGAIN: more are needed, which
     * must not be if the hello is read or the bytes are complete; another error: refuse the client.
     */
    int (*judge)(struct hello_handler *hh, const struct hello_handler_bytes *bytes);
    /* As preface_handler_ops.done, with an error of judge(), -ETIMEDOUT or -ENOMEM. */
    void (*done)(struct hello_handler *hh, int error);
};

struct hello_handler {
    struct preface_handler preface;
    const struct hello_handler_ops *ops;
    struct client_hello_scan scan;
    struct client_hello hello; /* its pointers are valid in judge() and done() only */
    int scanned; /* 0: `hello` is read; -EAGAIN; or an error, as client_hello_read() */
};

/*
 * hello_handler_add(hh, ch, ops):
 * Add ${hh} to the pipeline of ${ch}, as preface_handler_add(). No bytes are removed: the server
 * gets them.
 *
 * Thread: loop of ${ch}
 * Owns:   ${hh} must live as long as ${ch}
 */
void hello_handler_add(struct hello_handler *hh, struct channel *ch,
                       const struct hello_handler_ops *ops);

#endif
