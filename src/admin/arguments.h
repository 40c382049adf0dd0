/*
 * admin/arguments: parses the fields of a request, from its query or the JSON object in its body.
 *
 * The parser is strict: a field given twice, a broken escape or a value that is not UTF-8 is an
 * error.
 */
#ifndef ADMIN_ARGUMENTS_H
#define ADMIN_ARGUMENTS_H

#include <jansson.h>
#include <stddef.h>

#include "base/must.h"

#define ARGUMENTS_PROBLEM_BYTES 256

struct arguments_problem {
    char text[ARGUMENTS_PROBLEM_BYTES]; /* printable ASCII */
};

/*
 * arguments_parse_query(out, query, problem):
 * Parse `a=1&b=2` into an object of strings, with %XX and + decoded.
 *
 * Owns:   the caller owns ${out}
 * Errors: 0; -EINVAL (see ${problem}); -ENOMEM
 */
int arguments_parse_query(json_t **out, const char *query,
                          struct arguments_problem *problem) NODISCARD;

/*
 * arguments_parse_body(out, text, len, problem):
 * Parse a JSON object; an empty ${text} is an empty object.
 *
 * Owns:   the caller owns ${out}
 * Errors: 0; -EINVAL (see ${problem}); -ENOMEM
 */
int arguments_parse_body(json_t **out, const char *text, size_t len,
                         struct arguments_problem *problem) NODISCARD;

/*
 * arguments_check_names(fields, names, problem):
 * Refuse fields that are not in ${names}, a list ended by NULL. If ${names} is NULL, no field is
 * allowed.
 *
 * Errors: 0; -EINVAL (see ${problem})
 */
int arguments_check_names(json_t *fields, const char *const *names,
                          struct arguments_problem *problem) NODISCARD;

/*
 * arguments_refuse(problem, format, ...):
 * Write ${problem}, with '?' for bytes other than printable ASCII, and return -EINVAL.
 */
int arguments_refuse(struct arguments_problem *problem, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
