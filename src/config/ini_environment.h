/*
 * config/ini_environment: environment variables in the values of an INI file.
 *
 *   ${NAME}           the variable, which must be set
 *   ${NAME:-DEFAULT}  DEFAULT, if it is not set or empty
 *
 * A name has capitals, digits and '_' only, and does not begin with a digit: ${client} in an access
 * log's format stays as it is. So does a reference after "$$".
 */
#ifndef CONFIG_INI_ENVIRONMENT_H
#define CONFIG_INI_ENVIRONMENT_H

#include "base/must.h"
#include "config/ini.h"

#define INI_ENVIRONMENT_PROBLEM_BYTES 256

/* A value in which the variables are replaced, or why they cannot be. */
struct ini_environment {
    char text[INI_VALUE_BYTES + 1];
    char problem[INI_ENVIRONMENT_PROBLEM_BYTES];
};

/*
 * ini_environment_expand(out, value):
 * Replace the variables in ${value}.
 *
 * Thread: before start
 * Errors: 0; -EINVAL (${out}->problem says what is wrong)
 */
int ini_environment_expand(struct ini_environment *out, const char *value) NODISCARD;

#endif
