/*
 * stats/access_log_format: access log formats, parsed once.
 *
 *   text                    default columns, separated by blanks
 *   json                    object of a fixed list of variables
 *   json:NAME,NAME          object of these variables
 *   ... $NAME ... ${NAME}   template; $$ is a dollar sign
 *
 * Parsing checks the longest possible line, so that no line is truncated.
 */
#ifndef STATS_ACCESS_LOG_FORMAT_H
#define STATS_ACCESS_LOG_FORMAT_H

#include <stddef.h>

#include "base/must.h"
#include "stats/access_log_variable.h"

struct access_log_format;
struct access_log_record;
struct arena;

/* Limit of a line with its newline. */
#define ACCESS_LOG_LINE_BYTES 12288

struct access_log_format_problem {
    enum {
        ACCESS_LOG_FORMAT_NO_NAME, /* a name, `}` or comma is missing */
        ACCESS_LOG_FORMAT_UNKNOWN,
        ACCESS_LOG_FORMAT_TWICE,    /* repeated JSON key */
        ACCESS_LOG_FORMAT_CONSTANT, /* a template without variable */
        ACCESS_LOG_FORMAT_LONG
    } kind;
    const char *name; /* the ${len} offending bytes */
    size_t len;
};

/*
 * access_log_format_parse(out, text, arena, problem):
 * Parse the format ${text}.
 *
 * Owns:   ${arena} owns ${out}; ${text} must live as long as ${arena}
 * Errors: 0; -EINVAL (see ${problem}); -ENOMEM
 */
int access_log_format_parse(const struct access_log_format **out, const char *text,
                            struct arena *arena,
                            struct access_log_format_problem *problem) NODISCARD;

/*
 * access_log_format_copy(out, f, arena):
 * Copy ${f}, which may then be freed.
 *
 * Owns:   ${arena} owns ${out}
 * Errors: 0; -ENOMEM
 */
int access_log_format_copy(const struct access_log_format **out, const struct access_log_format *f,
                           struct arena *arena) NODISCARD;

/* access_log_format_variable(i): name of variable ${i}, from 0; NULL after the last. */
const char *access_log_format_variable(unsigned i);

/* access_log_format_asks(f): what a session must keep for a line, bits of enum access_log_ask. */
unsigned access_log_format_asks(const struct access_log_format *f);

/*
 * access_log_format_write(f, r, line):
 * Write the line of ${r} to ${line}, of ACCESS_LOG_LINE_BYTES; return its length.
 */
size_t access_log_format_write(const struct access_log_format *f, const struct access_log_record *r,
                               char *line);

#endif
