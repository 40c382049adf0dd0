/*
 * stats/access_log_variable: access log variables by name.
 */
#ifndef STATS_ACCESS_LOG_VARIABLE_H
#define STATS_ACCESS_LOG_VARIABLE_H

#include <stddef.h>

/* What a session must keep or ask the kernel for, only if a format has such a variable. */
enum access_log_ask {
    ACCESS_LOG_ASK_CLIENT_TCP = 1 << 0,
    ACCESS_LOG_ASK_SERVER_TCP = 1 << 1,
    ACCESS_LOG_ASK_SOURCE = 1 << 2,
    ACCESS_LOG_ASK_ATTEMPTS = 1 << 3,
    ACCESS_LOG_ASK_TIMES = 1 << 4 /* of ends of file, and bytes of the server */
};

struct access_log_record;
struct access_log_text;

struct access_log_variable {
    const char *name;
    void (*write)(struct access_log_text *t, const void *value); /* NULL: a text */
    size_t offset;                                               /* of the value in the record */
    size_t text_bytes; /* longest text before escaping; 0: a number */
    unsigned asks;     /* enum access_log_ask */
};

/*
 * access_log_variable_count() / access_log_variable_at(i):
 * Number of variables / variable ${i}, from 0.
 */
unsigned access_log_variable_count(void);
const struct access_log_variable *access_log_variable_at(unsigned i);

/*
 * access_log_variable_find(name, len):
 * Find a variable by the ${len} bytes of its name; NULL: unknown.
 */
const struct access_log_variable *access_log_variable_find(const char *name, size_t len);

/* access_log_variable_write(v, t, r): write the value of ${v} in ${r}. */
void access_log_variable_write(const struct access_log_variable *v, struct access_log_text *t,
                               const struct access_log_record *r);

/* access_log_variable_max_bytes(v): length of the longest written value, in any style. */
size_t access_log_variable_max_bytes(const struct access_log_variable *v);

#endif
