/*
 * handlers/hello_handler: reads the ClientHello of TLS that is passed through, as the first handler
 * of the client's channel (handlers/preface_handler).
 */
#ifndef HANDLERS_HELLO_HANDLER_H
#define HANDLERS_HELLO_HANDLER_H

#include "handlers/preface_handler.h"
#include "tls/client_hello.h"

struct hello_handler {
    struct preface_handler preface;
    struct client_hello_scan scan;
    struct client_hello hello; /* its pointers are valid in done() only */
    /*
     * As preface_handler_ops.done, with an error of client_hello_scan() or client_hello_read(),
     * -ETIMEDOUT, -ENODATA or -ENOMEM.
     */
    void (*done)(struct hello_handler *hh, int error);
};

/*
 * hello_handler_add(hh, ch, done):
 * Add ${hh} to the pipeline of ${ch}, as preface_handler_add(). No bytes are removed: the server
 * gets the hello.
 *
 * Thread: loop of ${ch}
 * Owns:   ${hh} must live as long as ${ch}
 */
void hello_handler_add(struct hello_handler *hh, struct channel *ch,
                       void (*done)(struct hello_handler *hh, int error));

#endif
