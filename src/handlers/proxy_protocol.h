/*
 * handlers/proxy_protocol: receives the PROXY protocol header before a client's bytes, as the first
 * handler of its channel (handlers/preface_handler).
 *
 * Only configured peers are trusted: a header can claim any address.
 */
#ifndef HANDLERS_PROXY_PROTOCOL_H
#define HANDLERS_PROXY_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "handlers/preface_handler.h"
#include "net/address.h"
#include "net/cidr.h"
#include "net/proxy_header.h"

enum proxy_protocol_mode {
    PROXY_PROTOCOL_OFF,
    PROXY_PROTOCOL_OPTIONAL, /* trusted peers may send a header */
    PROXY_PROTOCOL_REQUIRED  /* all peers must be trusted and send a header */
};

struct proxy_protocol_conf {
    enum proxy_protocol_mode mode;
    struct cidr_list trusted; /* peers that may send a header */
    int64_t timeout_ns;       /* to receive the header, from the beginning of the session */
};

struct proxy_protocol_gate {
    const struct proxy_protocol_conf *conf;
    const char *listener;
    struct log_limit log_limit;
};

enum proxy_protocol_verdict { PROXY_PROTOCOL_PASS, PROXY_PROTOCOL_READ, PROXY_PROTOCOL_REFUSE };

struct proxy_protocol {
    struct preface_handler preface;
    struct proxy_protocol_gate *gate;
    /*
     * As preface_handler_ops.done, with an error of proxy_header_decode(), -ETIMEDOUT, -ENODATA or
     * -ENOMEM.
     */
    void (*done)(struct proxy_protocol *pp, int error);
    /* `local`: none came; of its pointers, those in `tls` and `tlvs` are valid */
    struct proxy_header header;
    uint8_t *told; /* a copy of header.tlvs, later of the values of header.tls; NULL: none */
};

/*
 * proxy_protocol_expect(gate, peer):
 * Decide about ${peer}: read its header, serve it without a header (pass), or refuse it (logged at
 * most once a second). If ${gate} is NULL or PROXY_PROTOCOL_OFF, pass.
 */
enum proxy_protocol_verdict proxy_protocol_expect(struct proxy_protocol_gate *gate,
                                                  const struct address *peer);

/*
 * proxy_protocol_add(pp, ch, gate, done):
 * Add ${pp} to the pipeline of ${ch}, as preface_handler_add().
 *
 * Thread: loop of ${ch}
 * Owns:   ${pp} must live as long as ${ch}, ${gate} until done()
 */
void proxy_protocol_add(struct proxy_protocol *pp, struct channel *ch,
                        struct proxy_protocol_gate *gate,
                        void (*done)(struct proxy_protocol *pp, int error));

/*
 * proxy_protocol_set_gate(pp, gate):
 * Use ${gate} from now on: a reload has replaced the previous one.
 *
 * Thread: loop
 */
void proxy_protocol_set_gate(struct proxy_protocol *pp, struct proxy_protocol_gate *gate);

/*
 * proxy_protocol_trim(pp):
 * Keep only the values of header.tls; header.tlvs is empty from now on.
 *
 * Thread: loop
 */
void proxy_protocol_trim(struct proxy_protocol *pp);

/* proxy_protocol_free(pp): free the copy of header.tlvs. Thread: loop */
void proxy_protocol_free(struct proxy_protocol *pp);

/*
 * proxy_protocol_log_refusal(gate, peer, error):
 * Log why ${peer} is refused, at most once a second.
 */
void proxy_protocol_log_refusal(struct proxy_protocol_gate *gate, const struct address *peer,
                                int error);

#endif
