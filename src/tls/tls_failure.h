/* tls/tls_failure: why a TLS connection failed, for logs and counters. */
#ifndef TLS_TLS_FAILURE_H
#define TLS_TLS_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

struct tls_failure {
    int alert;           /* the first fatal one, sent or received; -1: none */
    bool alert_received; /* by us */
    char reason[96];     /* what the library says; empty: nothing */
};

#define TLS_FAILURE_TEXT_BYTES 200

/*
 * tls_failure_alert(f):
 * Name of the alert of ${f}, such as `unknown CA`; NULL: none.
 *
 * Thread: any
 */
const char *tls_failure_alert(const struct tls_failure *f);

/*
 * tls_failure_text(f, text, size):
 * Describe ${f}: `no shared cipher (alert sent: handshake failure)`; return ${text}.
 *
 * Thread: any
 */
const char *tls_failure_text(const struct tls_failure *f, char *text, size_t size);

#endif
