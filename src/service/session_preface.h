/*
 * service/session_preface: reads the first bytes of a client, before its session starts, in stages.
 *
 *   session_adopt -> PROXY header -> SSLRequest -> first byte (connect_on) or
 *      first bytes and ClientHello (routes) -> TLS handshake
 *                 -> handlers are added, service_ops.start
 *                 -> session_preface_read: bytes behind the preface
 *
 * Each stage is optional. It is a handler at the head of the client's pipeline that keeps back the
 * `active` event, bytes and end of file. When a stage is done, the next handler is added and gets
 * the remaining bytes. The last stage keeps them until the service reads, because a server may have
 * to be connected first.
 */
#ifndef SERVICE_SESSION_PREFACE_H
#define SERVICE_SESSION_PREFACE_H

#include <stddef.h>
#include <stdint.h>

#include "service/session.h"

/* Operations of a stage, on the session's loop; bytes() on any thread. ${memory}: its memory. */
struct session_preface_stage {
    /* Size of ${memory}, aligned for max_align_t; 0: ${service} has no such stage. */
    size_t (*bytes)(const struct service *service);
    /* Add the handler, which calls session_preface_done() or ends the session. */
    void (*begin)(struct session *s, struct channel *ch, void *memory);
    /* Number of bytes received, but not passed on. */
    size_t (*rest_bytes)(const void *memory);
    /*
     * Pass on the pipeline's `active` event and the bytes of rest_bytes(). Then remove the handler
     * from the pipeline, unless it encrypts.
     */
    void (*release)(void *memory);
    /* Decide, if that needs no further byte. NULL: it needs one. */
    void (*settle)(void *memory);
    /* From the beginning of the stage to the next give_up(). */
    int64_t (*timeout_ns)(const struct session *s, const void *memory);
    /* Does the client wait for us, not we for the client? NULL: never. */
    bool (*is_busy)(const void *memory);
    /* The timeout has expired: end the session, or go on with a longer timeout. */
    void (*give_up)(void *memory);
    /* Use the settings of ${s}, even before begin(). NULL: nothing to do. */
    void (*carry_over)(const struct session *s, void *memory);
};

/*
 * session_preface_expect(s, header):
 * Decide which stages ${s} has. ${header}: whether a PROXY header is expected.
 *
 * Thread: any, before ${s} is adopted
 */
void session_preface_expect(struct session *s, bool header);

/* session_preface_bytes(service): bytes to allocate for the preface; 0 if ${service} has none. */
size_t session_preface_bytes(const struct service *service);

/*
 * session_preface_add(s, memory, add_handlers, handlers_memory):
 * Begin the first stage on the client's channel, in the memory ${memory}. After the last one, call
 * ${add_handlers} with the channel and ${handlers_memory}.
 *
 * Thread: loop of ${s}
 */
typedef void session_preface_add_handlers(struct session *s, struct channel *ch, void *memory);
void session_preface_add(struct session *s, void *memory,
                         session_preface_add_handlers *add_handlers, void *handlers_memory);

/*
 * session_preface_done(s):
 * Complete the current stage: begin the next one, or the session. May call release() of the
 * completed stage.
 *
 * Thread: loop of ${s}
 */
void session_preface_done(struct session *s);

/*
 * session_preface_settle(s):
 * Complete the current stage, if it needs no further byte of the client. Call this at its
 * beginning, and after session_preface_carry_over().
 *
 * Thread: loop of ${s}
 */
void session_preface_settle(struct session *s);

/*
 * session_preface_read(s):
 * Begin to read the client, first the bytes behind the preface. Services call this.
 *
 * Thread: loop of ${s}
 */
void session_preface_read(struct session *s);

/*
 * session_preface_until_ns(s) / session_preface_give_up(s):
 * Deadline of the current stage, CLOCK_NEVER if it has none / give up the current stage.
 *
 * Thread: loop of ${s}
 */
int64_t session_preface_until_ns(const struct session *s);
void session_preface_give_up(struct session *s);

/*
 * session_preface_carry_over(s):
 * Give unfinished stages the new settings of ${s}.
 *
 * Thread: loop of ${s}
 */
void session_preface_carry_over(struct session *s);

#endif
