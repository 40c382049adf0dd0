/*
 * ini/ini_environment: environment variables in INI values.
 *
 *   ${NAME}           must be set
 *   ${NAME:-DEFAULT}  DEFAULT if unset or empty
 *
 * NAME has capital letters, digits and '_', and does not begin with a digit, so ${client} in an
 * access log format is not expanded. $${NAME} is not expanded either.
 */
#ifndef INI_INI_ENVIRONMENT_H
#define INI_INI_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"
#include "ini/ini_types.h"

#define INI_ENVIRONMENT_PROBLEM_BYTES 256

struct ini_environment {
    size_t max_bytes;
    char text[INI_VALUE_BYTES + 1];
    char problem[INI_ENVIRONMENT_PROBLEM_BYTES];
};

/*
 * ini_environment_expand(out, value, max_bytes):
 * Expand the variables in ${value}, to ${max_bytes} at most, which is at most INI_VALUE_BYTES.
 *
 * Thread: as config_reload()
 * Errors: 0; -EINVAL (see ${out}->problem)
 */
int ini_environment_expand(struct ini_environment *out, const char *value,
                           size_t max_bytes) NODISCARD;

/*
 * ini_environment_fits_in_a_file(value):
 * Could a file have ${value}? Not with control characters, both kinds of quotes or a variable.
 */
bool ini_environment_fits_in_a_file(const char *value);

#endif
