/*
 * stats/syslog_conf: where messages for syslog or the journal go, and what is in them.
 */
#ifndef STATS_SYSLOG_CONF_H
#define STATS_SYSLOG_CONF_H

#include <stdbool.h>

#include "net/address.h"

#define SYSLOG_CONF_TAG_BYTES  32  /* RFC 3164, section 4.1.3 */
#define SYSLOG_CONF_HOST_BYTES 255 /* RFC 5424, section 6 */

/* Messages that every receiver of RFC 5424 takes; more than this does not fit a UDP datagram. */
#define SYSLOG_CONF_MIN_BYTES 480
#define SYSLOG_CONF_MAX_BYTES 65000

enum syslog_protocol {
    SYSLOG_RFC3164, /* as libc sends it: local time */
    SYSLOG_RFC5424,
    SYSLOG_JOURNAL /* fields; `address` is the journal's socket */
};

struct syslog_conf {
    enum syslog_protocol protocol;
    struct address address; /* unix: a path or abstract name; else UDP */
    unsigned facility;      /* number of the facility, 0 to 23 */
    int severity;           /* 0 to 7; -1: that of the line */
    unsigned max_bytes;     /* of a message; 0: as much as the socket takes */
    char tag[SYSLOG_CONF_TAG_BYTES + 1];
    char host[SYSLOG_CONF_HOST_BYTES + 1]; /* name of this host; empty: none is sent */
};

#endif
