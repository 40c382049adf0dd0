/*
 * handlers/preface_handler: holds the first bytes of a client until a decoder has read them.
 *
 * It is the first handler of a channel. Decoders: handlers/proxy_protocol, handlers/hello_handler,
 * service/session_postgres. Until the release it holds back `active`, bytes and end of file; other
 * events pass.
 *
 *   add -> decode -> done(), reading is paused -> preface_handler_release() -> removed
 *            \-- preface_handler_give_up(): timeout --^
 *
 * After done() the session picks a server and adds handlers. The release then passes on the bytes
 * that decode() has left.
 */
#ifndef HANDLERS_PREFACE_HANDLER_H
#define HANDLERS_PREFACE_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "net/handler.h"

struct preface_handler;

/* Called on the channel's loop. */
struct preface_handler_ops {
    /*
     * Decide about ${data}, all bytes so far. Returns the number of bytes to remove; -EAGAIN: more
     * are needed; another error: refuse the client.
     */
    int (*decode)(struct preface_handler *p, const uint8_t *data, size_t len);
    /*
     * Decide when no more bytes come: ${error} is -EPROTO (end of file), -ENODATA (end of file
     * before any byte) or -ETIMEDOUT. Returns ${error}, or 0 to pass the bytes on.
     */
    int (*conclude)(struct preface_handler *p, int error);
    /*
     * decode() or conclude() has decided: ${error} is 0, their error, or -ENOMEM. Called at most
     * once; not after the channel is closed. May call preface_handler_release().
     */
    void (*done)(struct preface_handler *p, int error);
};

/* Up to so many bytes behind a preface, such as a short command, are kept without a buffer. */
#define PREFACE_REST_BYTES 128

struct preface_handler {
    struct handler handler;
    const struct preface_handler_ops *ops;
    struct buffer held;
    const uint8_t *rest; /* bytes to pass on: in done(), of the current read; then in `rest_copy` */
    size_t rest_bytes;
    uint8_t rest_copy[PREFACE_REST_BYTES];
    bool is_decided;
    bool has_ended; /* pass on end of file after the release */
};

/*
 * preface_handler_add(p, ch, ops):
 * Append ${p} to the pipeline of ${ch}.
 *
 * Thread: loop of ${ch}
 * Owns:   ${p} must live as long as ${ch}
 */
void preface_handler_add(struct preface_handler *p, struct channel *ch,
                         const struct preface_handler_ops *ops);

/*
 * preface_handler_settle(p):
 * Call decode() again with the bytes so far, perhaps none, because other things decide, too. No-op
 * after done() or the end of the channel.
 *
 * Thread: loop
 */
void preface_handler_settle(struct preface_handler *p);

/*
 * preface_handler_give_up(p):
 * The timeout has expired: conclude with -ETIMEDOUT. No-op after done() or the end of the channel.
 *
 * Thread: loop
 */
void preface_handler_give_up(struct preface_handler *p);

/*
 * preface_handler_release(p):
 * In or after done(p, 0): leave the pipeline, then pass on `active`, the bytes held, and end of
 * file.
 *
 * Thread: loop
 */
void preface_handler_release(struct preface_handler *p);

/* preface_handler_rest_bytes(p): number of bytes to pass on, in or after done(). Thread: loop */
size_t preface_handler_rest_bytes(const struct preface_handler *p);

#endif
