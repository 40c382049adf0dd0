/*
 * stats/access_log_filter: which lines an access log has.
 */
#ifndef STATS_ACCESS_LOG_FILTER_H
#define STATS_ACCESS_LOG_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct access_log_record;

enum access_log_only {
    ACCESS_LOG_ALL,
    ACCESS_LOG_ERRORS, /* not ended by a peer's end of file, as planned, or by an administrator */
    ACCESS_LOG_DENIED, /* turned away by rules or limits */
    ACCESS_LOG_DATA    /* with at least one byte of the client or for it */
};

/* All zero: every line. */
struct access_log_filter {
    enum access_log_only only;
    uint64_t share; /* of the connections, of 2^32; 0: all */
};

/*
 * access_log_filter_takes(f, r):
 * Is ${r} to be written? The number of the connection decides on the share: so all lines of a
 * connection are written, or none.
 */
bool access_log_filter_takes(const struct access_log_filter *f, const struct access_log_record *r);

#endif
