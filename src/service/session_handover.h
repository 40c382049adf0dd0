/*
 * service/session_handover: gives an open session to another process, and takes one from it.
 *
 *   old: may leave? -> leave_process -> save -> ... taken: vanish | not taken: session_join_loop
 *   new: restore -> restore_open -> ... our process has it: restore_begin | it has not: vanish
 *
 * The sockets are shared with the other process meanwhile: only one of both touches them.
 */
#ifndef SERVICE_SESSION_HANDOVER_H
#define SERVICE_SESSION_HANDOVER_H

#include <stdbool.h>

#include "base/must.h"

struct service;
struct session;
struct session_owner;
struct session_state;
struct upstream;
struct upstream_server;

/* Why a session stays with its process. */
enum session_stay {
    SESSION_STAYS_NOT,
    SESSION_STAYS_TLS,        /* with the client or the server, ended or begun here */
    SESSION_STAYS_CONNECTING, /* no server is linked, or the preface is not complete */
    SESSION_STAYS_CLOSING,
    SESSION_STAYS_BUSY,  /* a handler holds bytes, or a spare connection is on trial */
    SESSION_STAYS_FAULT, /* its listener injects faults */
    SESSION_STAYS_MIRROR,
    SESSION_STAYS_LEAVING, /* its end is set: its listener was removed, or it is shed */
    SESSION_STAYS_LOG,     /* its access log needs what a ClientHello or PROXY header has told */
    SESSION_STAYS_NAME,    /* the other process lacks its listener, upstream or server */
    SESSION_STAYS_CHANGED, /* there one of these is another, by its settings */
    SESSION_STAYS_SCARCE,  /* no memory or descriptors, here or there */
    SESSION_STAYS_RECORD,  /* the other process could not read its record */
    SESSION_STAYS
};

/* session_stay_word(stay): ${stay} as one word, such as `tls`. */
const char *session_stay_word(enum session_stay stay);

/* session_stay_is_lasting(stay): will it be so the next time, too? */
bool session_stay_is_lasting(enum session_stay stay);

/* session_stays(s): why ${s} cannot leave now; SESSION_STAYS_NOT: it can. Thread: loop of ${s} */
enum session_stay session_stays(const struct session *s);

/*
 * session_leave_process(s):
 * As session_leave_loop(), for a session that can leave; its sockets leave epoll at once, so that
 * events of sockets that are open elsewhere do not reach this process.
 *
 * Thread: loop of ${s}
 * Errors: 0; -ENOMEM (${s} is aborted, and stays)
 */
int session_leave_process(struct session *s) NODISCARD;

/*
 * session_save(s, st) / session_fds(s, fds):
 * Fill ${st}, which points into ${s} / the descriptors: of the client, the server, and both ends of
 * each leg's filled pipe; returns their number, at most 6.
 *
 * Thread: loop of ${s}, which has left it
 */
void session_save(struct session *s, struct session_state *st);
unsigned session_fds(const struct session *s, int *fds);

/*
 * session_vanish(s, is_taken):
 * Free ${s} by the end of the turn. Its descriptors are closed, and nothing is sent: another
 * process serves ${s}. It is not logged, and not counted as ended; ${is_taken}: it is counted as
 * handed over.
 *
 * Thread: loop of ${s}
 */
void session_vanish(struct session *s, bool is_taken);

/* Where a restored session belongs; no upstream: an echo. */
struct session_place {
    const struct service *service;
    struct upstream *upstream;
    struct upstream_server *server; /* entered; the session leaves it at its end */
};

/*
 * session_restore(out, place, st):
 * Create the session of ${st}, which is counted nowhere as new.
 *
 * Thread: any; control loop or main if it has a server
 * Owns:   ${out} leaves the server; until session_restore_open() free it with session_unrestore()
 * Errors: 0; -ENOMEM
 */
int session_restore(struct session **out, const struct session_place *place,
                    const struct session_state *st) NODISCARD;
void session_unrestore(struct session *s);

/*
 * session_restore_open(s, owner, st, fds):
 * Build the channels of ${s} without touching ${fds}, as of session_fds(). Then
 * session_restore_begin() or, also after an error, session_vanish() in the same task.
 *
 * Thread: loop of ${owner}, which can watch ${fds}
 * Owns:   ${s} owns ${fds}, also after an error
 * Errors: 0; -ENOMEM; as pipeline_restore() and channel_restore_pipe()
 */
int session_restore_open(struct session *s, struct session_owner *owner,
                         const struct session_state *st, const int *fds) NODISCARD;

/* session_restore_begin(s): serve ${s}. Thread: loop of ${s} */
void session_restore_begin(struct session *s);

/*
 * session_is_stranded(s):
 * Has the server of ${s} gone, so that sessions there were ended, while ${s} was not on a loop?
 *
 * Thread: loop of ${s}
 */
bool session_is_stranded(const struct session *s);

#endif
