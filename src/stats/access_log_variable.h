/*
 * stats/access_log_variable: what can be in a line of an access log, by name.
 */
#ifndef STATS_ACCESS_LOG_VARIABLE_H
#define STATS_ACCESS_LOG_VARIABLE_H

#include <stddef.h>

struct access_log_record;
struct access_log_text;

struct access_log_variable {
    const char *name;
    void (*write)(struct access_log_text *t, const struct access_log_record *r);
    size_t text_bytes; /* of its value at most, before it is escaped; 0: it is a number */
};

/*
 * access_log_variable_count() / access_log_variable_at(i):
 * How many there are; number ${i} of them, from 0.
 *
 * Thread: any
 */
unsigned access_log_variable_count(void);
const struct access_log_variable *access_log_variable_at(unsigned i);

/*
 * access_log_variable_find(name, len):
 * The one whose name is the ${len} bytes at ${name}.
 *
 * Thread: any
 * Errors: NULL (there is none)
 */
const struct access_log_variable *access_log_variable_find(const char *name, size_t len);

/*
 * access_log_variable_max_bytes(v):
 * What its value takes at most, in either style.
 *
 * Thread: any
 * Units:  bytes
 */
size_t access_log_variable_max_bytes(const struct access_log_variable *v);

#endif
