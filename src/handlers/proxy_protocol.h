/*
 * handlers/proxy_protocol: receives the PROXY protocol header before a client's bytes.
 *
 * The first handler of a channel. It blocks every event, even `active`, until the header is read:
 *
 *   add -> reading -> done(), reading is paused -> proxy_protocol_release() -> removed
 *             \-- proxy_protocol_give_up(): timeout --^
 *
 * After done() the session picks a server and adds handlers. The release then passes on the bytes
 * behind the header.
 *
 * Only configured peers are trusted: a header can claim any address.
 */
#ifndef HANDLERS_PROXY_PROTOCOL_H
#define HANDLERS_PROXY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/log.h"
#include "net/address.h"
#include "net/cidr.h"
#include "net/handler.h"
#include "net/proxy_header.h"

enum proxy_protocol_mode {
    PROXY_PROTOCOL_OFF,
    PROXY_PROTOCOL_OPTIONAL, /* trusted peers may send a header */
    PROXY_PROTOCOL_REQUIRED  /* all peers must be trusted and send a header */
};

struct proxy_protocol_conf {
    enum proxy_protocol_mode mode;
    struct cidr_list trusted; /* peers whose header is used */
    int64_t timeout_ns;       /* to receive the header, from the beginning of the session */
};

struct proxy_protocol_gate {
    const struct proxy_protocol_conf *conf;
    const char *listener;
    struct log_limit log_limit;
};

enum proxy_protocol_verdict { PROXY_PROTOCOL_PASS, PROXY_PROTOCOL_READ, PROXY_PROTOCOL_REFUSE };

struct proxy_protocol {
    struct handler handler;
    struct proxy_protocol_gate *gate;
    /*
     * The header is read (0), or failed: an error of proxy_header_decode(), -ETIMEDOUT, -ENODATA
     * (end of file before any byte), or -ENOMEM. Called at most once; not after the channel is
     * closed. May call proxy_protocol_release().
     */
    void (*done)(struct proxy_protocol *pp, int error);
    struct proxy_header header; /* `local` if there was none; its pointers dangle */
    struct buffer held;
    const uint8_t *rest; /* in done(): bytes of the current read behind the header */
    size_t rest_bytes;
    bool is_decided;
    bool has_ended; /* pass on end of file after the release */
};

/*
 * proxy_protocol_expect(gate, peer):
 * Decide about ${peer}: read its header, pass it without a header, or refuse it (logged at most
 * once a second). If ${gate} is NULL or PROXY_PROTOCOL_OFF, pass.
 *
 * Thread: any
 */
enum proxy_protocol_verdict proxy_protocol_expect(struct proxy_protocol_gate *gate,
                                                  const struct address *peer);

/*
 * proxy_protocol_add(pp, ch, gate, done):
 * Add ${pp} to the pipeline of ${ch} as first handler.
 *
 * Thread: loop of ${ch}
 * Owns:   ${pp} must live as long as ${ch}, ${gate} until done()
 */
void proxy_protocol_add(struct proxy_protocol *pp, struct channel *ch,
                        struct proxy_protocol_gate *gate,
                        void (*done)(struct proxy_protocol *pp, int error));

/*
 * proxy_protocol_set_gate(pp, gate):
 * Replace the gate.
 *
 * Thread: the channel's loop
 */
void proxy_protocol_set_gate(struct proxy_protocol *pp, struct proxy_protocol_gate *gate);

/*
 * proxy_protocol_give_up(pp):
 * The timeout has expired: call done() with -ETIMEDOUT, or with 0 if an optional header has not
 * begun. No-op after done() or the end of the channel.
 *
 * Thread: the channel's loop
 */
void proxy_protocol_give_up(struct proxy_protocol *pp);

/*
 * proxy_protocol_release(pp):
 * After done(pp, 0): leave the pipeline, then pass on `active` and the bytes behind the header.
 *
 * Thread: the channel's loop
 */
void proxy_protocol_release(struct proxy_protocol *pp);

/*
 * proxy_protocol_rest_bytes(pp):
 * After done(): number of bytes received behind the header.
 *
 * Thread: the channel's loop
 */
size_t proxy_protocol_rest_bytes(const struct proxy_protocol *pp);

/*
 * proxy_protocol_log_refusal(gate, peer, error):
 * Log why ${peer} is refused, at most once a second.
 *
 * Thread: any
 */
void proxy_protocol_log_refusal(struct proxy_protocol_gate *gate, const struct address *peer,
                                int error);

#endif
