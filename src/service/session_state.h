/*
 * service/session_state: an open session as values, without its descriptors: what another process
 * needs to serve it on.
 */
#ifndef SERVICE_SESSION_STATE_H
#define SERVICE_SESSION_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handlers/pipeline_conf.h"
#include "net/address.h"
#include "net/handler.h"
#include "service/session_facts.h"
#include "stats/session_id.h"

/* Buckets of a bandwidth limit: from and to the client. */
#define SESSION_STATE_BUCKETS 2

/* One connection of a session. */
struct session_state_leg {
    uint64_t bytes_in, bytes_out;
    int64_t last_io_at_ns;
    uint64_t last_read_bytes; /* session.last_reads */
    int64_t last_read_at_ns;
    int64_t fin_at_ns;                                /* for the access log; 0: no end of file */
    int64_t bucket_full_at_ns[SESSION_STATE_BUCKETS]; /* of its bandwidth limits; 0: full */
    uint8_t read_ended;
    uint8_t eof_wanted, eof_sent; /* our end of file follows the unsent bytes / was sent */
    uint8_t unwritable;           /* its source is paused until the unsent bytes are few */
    uint64_t piped; /* bytes to send before the unsent ones, in a pipe that goes along */
    const uint8_t *unsent;
    size_t n_unsent;
};

/* Texts and bytes are those of the session, or of the record that was decoded. */
struct session_state {
    const char *listener;
    const char *upstream, *server; /* "": an echo */
    struct address client;
    struct address listen; /* len 0: unknown */
    struct session_id id;
    uint64_t numbers[SESSION_FACTS_LOGS]; /* in the access logs; 0: none */
    int64_t began_at_ns, opened_at_ns, expires_at_ns, checked_at_ns, last_read_updated_at_ns;
    uint64_t counted_in, counted_out;
    uint32_t access_lines;
    uint32_t queue_us, connect_us, first_byte_us; /* UINT32_MAX: unknown */
    uint32_t tries;
    uint8_t reason; /* enum session_reason, of what has ended so far */
    uint8_t has_open_line;
    uint8_t awaits_client; /* the client's first bytes for the server are still to be noticed */
    uint8_t awaits_server; /* the same of the server's */
    uint8_t n_handlers;    /* of the client's connection, in their order */
    struct handler_state handlers[PIPELINE_CONF_HANDLERS];
    struct session_state_leg legs[SESSION_FACTS_LEGS];
};

/* session_state_has_server(st): is it the state of a proxied session, with two descriptors? */
static inline bool session_state_has_server(const struct session_state *st)
{
    return *st->upstream != '\0';
}

#endif
