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

/* Longest text of `attempts`, with its NUL. */
#define ACCESS_LOG_RECORD_ATTEMPTS_BYTES 512

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
    const char *tls_section; /* NAME of the [tls NAME] chosen for the client */
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
    enum session_reason reason; /* SESSION_OPEN: still open */

    /* Only if the format asks for them (access_log_format_asks()). */
    const uint64_t *client_rtt_us; /* see net/tcp_figures.h */
    const uint64_t *client_rtt_var_us;
    const uint64_t *client_retransmits;
    const uint64_t *client_delivery_rate;
    const uint64_t *server_rtt_us;
    const uint64_t *server_rtt_var_us;
    const uint64_t *server_retransmits;
    const uint64_t *server_delivery_rate;
    const uint64_t *server_bytes_in;      /* from the server */
    const uint64_t *server_bytes_out;     /* to the server */
    const struct address *source_address; /* ours, towards the server */
    const char *attempts;   /* ADDRESS=RESULT,ADDRESS=RESULT: all connects to servers */
    int64_t client_fin_ns;  /* from the session's start to the client's end of file */
    int64_t server_fin_ns;  /* the same of the server */
    int64_t half_closed_ns; /* time with one end of file only */
};

#endif
