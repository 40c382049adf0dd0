/*
 * handlers/proxy_protocol: receives the PROXY protocol header in front of a client's bytes.
 *
 * It is the first handler of a channel and blocks every event, even `active`, until the header is
 * read:
 *
 *   add -> reading -> done(), reading is paused -> proxy_protocol_release() -> removed
 *             \-- proxy_protocol_give_up(): timeout --^
 *
 * Other handlers may be added until the release. Between done() and the release the session acts on
 * the header, for example picks a server. Bytes behind the header wait here and are delivered
 * first. Afterwards the channel behaves as if there had been no header.
 *
 * Only configured peers are trusted: a client that may send a header can claim any address.
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
    PROXY_PROTOCOL_OPTIONAL, /* trusted peers may send one */
    PROXY_PROTOCOL_REQUIRED  /* clients without one are refused */
};

struct proxy_protocol_conf {
    enum proxy_protocol_mode mode;
    struct cidr_list trusted; /* peers whose header is used */
    int64_t timeout_ns;       /* for the header, from the beginning of the session */
};

/* A listener that accepts headers. */
struct proxy_protocol_gate {
    const struct proxy_protocol_conf *conf;
    const char *listener; /* name, for logs */
    struct log_limit log_limit;
};

enum proxy_protocol_verdict { PROXY_PROTOCOL_PASS, PROXY_PROTOCOL_READ, PROXY_PROTOCOL_REFUSE };

struct proxy_protocol {
    struct handler handler;
    struct proxy_protocol_gate *gate;
    /*
     * Reading has ended. ${error}: 0, an error of proxy_header_decode(), -ETIMEDOUT, -ENODATA (end
     * of file before any byte), or -ENOMEM. Called at most once, and not on a channel closed
     * before. May release ${pp}.
     */
    void (*done)(struct proxy_protocol *pp, int error);
    struct proxy_header header; /* `local` without a header; its pointers are invalid */
    struct buffer kept;         /* bytes read and not passed on */
    const uint8_t *rest; /* in done(): the rest of the current read; copied to `kept` after it */
    size_t rest_bytes;
    bool is_decided;
    bool has_ended; /* end of file, not yet forwarded */
};

/*
 * proxy_protocol_expect(gate, peer):
 * Decide whether ${peer} must be read for a header, passes without, or is refused. A NULL ${gate}
 * passes all peers. Refusals are logged, once a second.
 *
 * Thread: any
 */
enum proxy_protocol_verdict proxy_protocol_expect(struct proxy_protocol_gate *gate,
                                                  const struct address *peer);

/*
 * proxy_protocol_add(pp, ch, gate, done):
 * Add ${pp} to the pipeline of ${ch}, as its first handler.
 *
 * Thread: loop of ${ch}
 * Owns:   nothing; ${pp} and ${gate} must live as long as ${ch}
 */
void proxy_protocol_add(struct proxy_protocol *pp, struct channel *ch,
                        struct proxy_protocol_gate *gate,
                        void (*done)(struct proxy_protocol *pp, int error));

/*
 * proxy_protocol_give_up(pp):
 * Header timeout: call done() with -ETIMEDOUT, or 0 if the header is optional and has not begun.
 * Does nothing after reading or the channel has ended.
 *
 * Thread: loop of the channel
 */
void proxy_protocol_give_up(struct proxy_protocol *pp);

/*
 * proxy_protocol_release(pp):
 * After done(pp, 0): leave the pipeline, and forward `active` and the kept bytes.
 *
 * Thread: loop of the channel
 */
void proxy_protocol_release(struct proxy_protocol *pp);

/*
 * proxy_protocol_rest_bytes(pp):
 * After done(): number of bytes read that follow the header.
 *
 * Thread: loop of the channel
 * Units:  bytes
 */
size_t proxy_protocol_rest_bytes(const struct proxy_protocol *pp);

/*
 * proxy_protocol_log_refusal(gate, peer, error):
 * Log the refusal of ${peer} for the ${error} of done(), once a second.
 *
 * Thread: any
 */
void proxy_protocol_log_refusal(struct proxy_protocol_gate *gate, const struct address *peer,
                                int error);

#endif
