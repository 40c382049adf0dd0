/* tls/tls_failure: why a TLS connection failed, for logs and counters. */
#ifndef TLS_TLS_FAILURE_H
#define TLS_TLS_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

/* Space for the error, the common name and the serial number of a certificate. */
#define TLS_FAILURE_REASON_BYTES 400

struct tls_failure {
    int alert;                             /* first fatal alert, sent or received; -1: no alert */
    bool alert_received;                   /* false: we sent the alert */
    char reason[TLS_FAILURE_REASON_BYTES]; /* the library's error text or ours; empty: unknown */
};

#define TLS_FAILURE_TEXT_BYTES (TLS_FAILURE_REASON_BYTES + 80)

/*
 * tls_failure_alert(f):
 * Return the name of the alert of ${f}, such as `unknown CA`; NULL: no alert.
 */
const char *tls_failure_alert(const struct tls_failure *f);

/*
 * tls_failure_text(f, text, size):
 * Describe ${f} in ${text}, as `no shared cipher (alert sent: handshake failure)`; return ${text}.
 */
const char *tls_failure_text(const struct tls_failure *f, char *text, size_t size);

#endif
