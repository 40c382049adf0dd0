/*
 * handlers/proxy_protocol: reads the header by which a proxy names its client, in front of all that
 * the client sent.
 *
 * It is the first handler of a channel, and nothing passes it before the header is there, not even
 * `active`:
 *
 *   add -> reading -> done(), reading is held up -> proxy_protocol_release() -> gone from the
 *   pipeline
 *             \-- proxy_protocol_give_up(): time is over --^
 *
 * Other handlers may be added until then. Between done() and the release whoever was told finds out
 * what becomes of the client, such as which server it goes to. What came behind the header with the
 * same read waits here, and is the first that the next handler gets. Afterwards the channel is as
 * if there had been no header.
 *
 * Whom to believe is a matter of configuration: a client that could send a header would be whom it
 * likes.
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
    PROXY_PROTOCOL_OPTIONAL, /* who is trusted may send one */
    PROXY_PROTOCOL_REQUIRED  /* nobody is served without one */
};

struct proxy_protocol_conf {
    enum proxy_protocol_mode mode;
    struct cidr_list trusted; /* whose header is believed */
    int64_t timeout_ns;       /* for the header to come, from the beginning of the session */
};

/* A listener that takes headers. */
struct proxy_protocol_gate {
    const struct proxy_protocol_conf *conf;
    const char *listener; /* name, for logs */
    struct log_limit log_limit;
};

/* What to do about a peer. */
enum proxy_protocol_verdict { PROXY_PROTOCOL_PASS, PROXY_PROTOCOL_READ, PROXY_PROTOCOL_REFUSE };

struct proxy_protocol {
    struct handler handler;
    struct proxy_protocol_gate *gate;
    /*
     * Reading has ended, with 0 or why the client cannot be served: as proxy_header_decode(),
     * -ETIMEDOUT, -ENODATA (the peer has ended and never said anything), or -ENOMEM. Once at most:
     * not for a channel that was closed before. It may release ${pp}.
     */
    void (*done)(struct proxy_protocol *pp, int error);
    struct proxy_header header; /* local without one; what it points at is gone */
    struct buffer kept;         /* what has been read and not passed on */
    const uint8_t *rest;        /* within done(): the end of what is being read; kept afterwards */
    size_t rest_bytes;
    bool is_decided;
    bool has_ended; /* the peer has; still to be told */
};

/*
 * proxy_protocol_expect(gate, peer):
 * Is a header to be read from ${peer}, first of all; can it be served without; or is it not to be
 * served at all? NULL is a gate where all can pass. What it refuses is logged, once a second.
 *
 * Thread: any
 */
enum proxy_protocol_verdict proxy_protocol_expect(struct proxy_protocol_gate *gate,
                                                  const struct address *peer);

/*
 * proxy_protocol_add(pp, ch, gate, done):
 * Put ${pp} into the pipeline of ${ch}, which has no other handler yet.
 *
 * Thread: loop of ${ch}
 * Owns:   nothing; ${pp} and ${gate} must live as long as ${ch}
 */
void proxy_protocol_add(struct proxy_protocol *pp, struct channel *ch,
                        struct proxy_protocol_gate *gate,
                        void (*done)(struct proxy_protocol *pp, int error));

/*
 * proxy_protocol_give_up(pp):
 * The time for a header is over: without one if it is optional and none has begun. Nothing happens
 * if reading has ended, or the channel has.
 *
 * Thread: loop of the channel
 * Errors: none; the rest is done()
 */
void proxy_protocol_give_up(struct proxy_protocol *pp);

/*
 * proxy_protocol_release(pp):
 * After done(pp, 0): let everything pass, `active` and what was kept first, and leave the pipeline.
 *
 * Thread: loop of the channel
 */
void proxy_protocol_release(struct proxy_protocol *pp);

/*
 * proxy_protocol_rest_bytes(pp):
 * After done(): how much of what was read belongs to the client and not to the header.
 *
 * Thread: loop of the channel
 * Units:  bytes
 */
size_t proxy_protocol_rest_bytes(const struct proxy_protocol *pp);

/*
 * proxy_protocol_log_refusal(gate, peer, error):
 * That ${peer} is not served for the ${error} of done(), in the log, once a second.
 *
 * Thread: any
 */
void proxy_protocol_log_refusal(struct proxy_protocol_gate *gate, const struct address *peer,
                                int error);

#endif
