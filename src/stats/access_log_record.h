/*
 * stats/access_log_record: values of one access log line.
 */
#ifndef STATS_ACCESS_LOG_RECORD_H
#define STATS_ACCESS_LOG_RECORD_H

#include <stdint.h>

#include "stats/session_reason.h"

struct address;
struct session_id;

/* Unknown or inapplicable duration. */
#define ACCESS_LOG_RECORD_NONE_NS (-1)

/* Longest text of `alpn`, with its NUL. */
#define ACCESS_LOG_RECORD_ALPN_BYTES 64

/*
 * Pointers are valid for one call; NULL: unknown or inapplicable. Text may hold any byte; too long
 * text is truncated.
 */
struct access_log_record {
    int64_t time_ns;     /* when the line is written, since 1970 (UTC) */
    uint64_t connection; /* number in this log, from 1 */
    const char *listener;
    const char *upstream;
    const char *server;
    const char *worker;
    const struct address *client;
    const struct address *listen;
    const struct address *proxy; /* the peer, if its PROXY header named the client */
    const struct address *server_address;
    const struct session_id *id;
    const char *sni;  /* server name of a TLS client */
    const char *alpn; /* with `tls`: negotiated protocol; else all offered, comma-separated */
    const char *ja4;  /* JA4 fingerprint of a TLS client */
    const char *tls_version;
    const char *tls_cipher;
    const char *tls_group;
    const char *tls_resumed; /* yes or no */
    const char *tls_client_name;
    const char *tls_client_fingerprint;
    const char *tls_alert;
    const char *server_tls_alert;
    int64_t tls_handshake_ns;
    uint64_t bytes_in;  /* from the client */
    uint64_t bytes_out; /* to the client */
    int64_t duration_ns;
    int64_t queue_ns;
    int64_t connect_ns;
    int64_t first_byte_ns;      /* from the session's start to the server's first byte */
    uint64_t tries;             /* servers tried */
    uint64_t client_rtt_us;     /* smoothed round-trip time to the client; 0: unknown */
    enum session_reason reason; /* SESSION_OPEN: still open */
};

#endif
