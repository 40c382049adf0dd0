/*
 * stats/access_log_record: what an access log can say of one connection.
 */
#ifndef STATS_ACCESS_LOG_RECORD_H
#define STATS_ACCESS_LOG_RECORD_H

#include <stdint.h>

#include "stats/session_reason.h"

struct address;
struct session_id;

/* A duration that is not known, or that there was none of. */
#define ACCESS_LOG_RECORD_NONE_NS (-1)

/*
 * Everything is borrowed for the time of one call. A pointer that is NULL stands for what does not
 * apply, or is not known. Text may hold any byte; what is longer than access_log_format allows for
 * is cut.
 */
struct access_log_record {
    int64_t time_ns;      /* of the line, since 1970 (UTC) */
    uint64_t connection;  /* the number of the connection in its log, from 1 */
    const char *listener; /* names */
    const char *upstream;
    const char *server;
    const char *worker;
    const struct address *client;
    const struct address *listen;
    const struct address *proxy; /* that named the client */
    const struct address *server_address;
    const struct session_id *id;
    uint64_t bytes_in;  /* from the client */
    uint64_t bytes_out; /* to the client */
    int64_t duration_ns;
    int64_t queue_ns;
    int64_t connect_ns;
    int64_t first_byte_ns;      /* since the connection began */
    unsigned tries;             /* servers */
    enum session_reason reason; /* SESSION_OPEN: the connection goes on */
};

#endif
