/*
 * stats/access_log_format: how a line of an access log looks: a format, read once, that is run for
 * each line.
 *
 *   text                    what most want to know, in columns with blanks between
 *   json                    an object of all variables
 *   json:NAME,NAME          an object of these
 *   ... $NAME ... ${NAME}   what it says, with the values in place of the variables; $$ is a dollar
 *   sign
 *
 * How long a line can get at most is known when its format is read, so that none is ever cut.
 */
#ifndef STATS_ACCESS_LOG_FORMAT_H
#define STATS_ACCESS_LOG_FORMAT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

struct access_log_format;
struct access_log_record;
struct arena;

/* The longest line, its newline included. */
#define ACCESS_LOG_LINE_BYTES 8192

/* What is wrong with a format. */
struct access_log_format_problem {
    enum {
        ACCESS_LOG_FORMAT_NO_NAME, /* a `$` without a name behind it, or a `{` without a `}` */
        ACCESS_LOG_FORMAT_UNKNOWN, /* there is no variable of that name */
        ACCESS_LOG_FORMAT_TWICE,   /* a name that is there twice in an object */
        /* there is no variable in it, so that all lines would be the same */
        ACCESS_LOG_FORMAT_CONSTANT,
        ACCESS_LOG_FORMAT_LONG /* a line could be longer than ACCESS_LOG_LINE_BYTES */
    } kind;
    const char *
        /* where it stands, ${len} bytes of it; ACCESS_LOG_FORMAT_NO_NAME: what is there instead */
        name;
    size_t len;
};

/*
 * access_log_format_parse(out, text, arena, problem):
 * Read the format ${text}.
 *
 * Thread: before start
 * Owns:   ${arena} owns ${out}; ${text} must live as long
 * Errors: 0; -EINVAL (${problem} says what is wrong); -ENOMEM
 */
int access_log_format_parse(const struct access_log_format **out, const char *text,
                            struct arena *arena,
                            struct access_log_format_problem *problem) NODISCARD;

/*
 * access_log_format_variable(i):
 * The name of variable number ${i}, from 0; NULL behind the last.
 *
 * Thread: any
 * Errors: NULL
 */
const char *access_log_format_variable(unsigned i);

/*
 * access_log_format_write(f, r, line):
 * Write the line of ${r}, newline included; returns its length.
 *
 * Thread: any
 * Units:  bytes; ${line} has room for ACCESS_LOG_LINE_BYTES
 */
size_t access_log_format_write(const struct access_log_format *f, const struct access_log_record *r,
                               char *line);

#endif
