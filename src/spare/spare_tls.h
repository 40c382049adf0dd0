/*
 * spare/spare_tls: TLS of one spare connection.
 *
 *   begin --> handshake --OPENED--> read: tickets are kept, other bytes are SPOKE --> take, close
 *                 |                        \-- refused behind the handshake: FAILED
 *                 \-- FAILED                \-- the server ends: ENDED
 */
#ifndef SPARE_SPARE_TLS_H
#define SPARE_SPARE_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct netloop;
struct server_tls_taken;
struct upstream_tls_conf;
struct spare_tls;
struct tls_handshakes;
struct upstream_server;

enum spare_tls_event {
    SPARE_TLS_OPENED,
    SPARE_TLS_CONFIRMED, /* the server has accepted the handshake: at once, or later in TLS 1.3 */
    SPARE_TLS_FAILED,    /* also after OPENED, not CONFIRMED; call spare_tls_close() */
    SPARE_TLS_SPOKE,
    SPARE_TLS_ENDED /* call spare_tls_close() */
};

struct spare_tls_conf {
    struct netloop *net;
    const struct upstream_tls_conf *tls;
    struct tls_handshakes *handshakes;
    struct upstream_server *server;
    int64_t deadline_ns; /* of the handshake */
    /*
     * ${why}: for SPARE_TLS_FAILED only. Inside spare_tls_begin() it may be called with
     * SPARE_TLS_FAILED. Not called after close or take.
     */
    void (*event)(void *cookie, enum spare_tls_event what, const char *why);
    void *cookie;
};

/*
 * spare_tls_begin(out, conf, fd):
 * Begin a TLS handshake over ${fd}. ${out} is set before event() is called.
 *
 * Thread: loop
 * Owns:   on 0 ${out} owns ${fd}; ${conf} is copied; conf->tls is used during the call only
 * Errors: 0; -ENOMEM
 */
int spare_tls_begin(struct spare_tls **out, const struct spare_tls_conf *conf, int fd) NODISCARD;

/*
 * spare_tls_fits(t, conf) / spare_tls_is_silent(t):
 * Does ${t} have the TLS profile and server name that ${conf} gives now, after a reload or with
 * changed files? / Is ${t} open, with nothing to read, and all of its handshake sent?
 *
 * Thread: loop
 */
bool spare_tls_fits(const struct spare_tls *t, const struct upstream_tls_conf *conf);
bool spare_tls_is_silent(const struct spare_tls *t);

/*
 * spare_tls_take(t, out) / spare_tls_close(t):
 * Free a silent ${t}, return its descriptor and set ${out} to its TLS; the caller owns both / close
 * and free ${t}, or NULL.
 *
 * Thread: loop
 */
int spare_tls_take(struct spare_tls *t, struct server_tls_taken *out);
void spare_tls_close(struct spare_tls *t);

#endif
