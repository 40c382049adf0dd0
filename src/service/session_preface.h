/*
 * service/session_preface: what is read of a client before its session starts, in stages.
 *
 *   session_adopt -> PROXY header -> ClientHello (routes) | SSLRequest -> TLS handshake
 *                 -> handlers are added, service_ops.start
 *                 -> session_preface_read: bytes behind the preface
 *
 * Each stage is a handler at the head of the client's pipeline that keeps back `active`, bytes and
 * end of file. When a stage is done, the handler of the next one is added and gets the remaining
 * bytes. The last stage keeps them until the service reads, as a server may have to be connected
 * first.
 */
#ifndef SERVICE_SESSION_PREFACE_H
#define SERVICE_SESSION_PREFACE_H

#include <stddef.h>
#include <stdint.h>

#include "service/session.h"

/* Called on the session's loop; ${room} is the memory of the stage. */
struct session_preface_stage {
    /* Bytes of memory, a multiple of max_align_t; 0: the service has no such stage. */
    size_t (*bytes)(const struct service *service);
    /* Add the handler, which calls session_preface_done() or ends the session. */
    void (*begin)(struct session *s, struct channel *ch, void *room);
    /* Bytes received and not passed on. */
    size_t (*rest_bytes)(const void *room);
    /*
     * Pass on the pipeline's `active` event and the rest_bytes() bytes. The handler leaves the
     * pipeline; one that encrypts stays.
     */
    void (*release)(void *room);
    int64_t (*timeout_ns)(const struct session *s, const void *room);
    /* The timeout has expired. */
    void (*give_up)(void *room);
    /* The session has other settings (session_carry_over). NULL: nothing to do. */
    void (*carry_over)(const struct session *s, void *room);
};

/*
 * session_preface_expect(s, header):
 * Decide which stages ${s} has; ${header}: a PROXY header is expected.
 *
 * Thread: any, before ${s} is adopted
 */
void session_preface_expect(struct session *s, bool header);

/*
 * session_preface_bytes(service):
 * Bytes to allocate for the preface; 0 if ${service} has none.
 *
 * Thread: any
 */
size_t session_preface_bytes(const struct service *service);

/*
 * session_preface_add(s, ch, room, handlers_room):
 * Begin the first stage, in ${room}. After the last one the listener's handlers are added to ${ch};
 * ${handlers_room} is for session_handlers_add_template().
 *
 * Thread: loop of ${s}
 */
void session_preface_add(struct session *s, struct channel *ch, void *room, void *handlers_room);

/*
 * session_preface_done(s):
 * The current stage is complete: begin the next one, or the session. The handler must accept
 * release() inside this call.
 *
 * Thread: loop of ${s}
 */
void session_preface_done(struct session *s);

/*
 * session_preface_read(s):
 * Called by services: begin to read the client, first the bytes behind the preface.
 *
 * Thread: loop of ${s}
 */
void session_preface_read(struct session *s);

/*
 * session_preface_until_ns(s) / session_preface_give_up(s):
 * When to give up the current stage, CLOCK_NEVER if it has no timeout / give it up.
 *
 * Thread: loop of ${s}
 */
int64_t session_preface_until_ns(const struct session *s);
void session_preface_give_up(struct session *s);

/*
 * session_preface_carry_over(s):
 * Part of session_carry_over().
 *
 * Thread: loop of ${s}
 */
void session_preface_carry_over(struct session *s);

#endif
