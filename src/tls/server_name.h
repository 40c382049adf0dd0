/*
 * tls/server_name: host names of SNI, certificates and routes: syntax, lower case, wildcards.
 *
 *   a.example      exact name
 *   *.a.example    wildcard: matches b.a.example; neither a.example nor c.b.a.example
 */
#ifndef TLS_SERVER_NAME_H
#define TLS_SERVER_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

/* Longest host name in text form (RFC 1035, 2.3.4), and its NUL. */
#define SERVER_NAME_BYTES 254

/*
 * server_name_read(out, name, len):
 * Check the syntax of a host name and write it in lower case, without a final dot. Labels have
 * letters, digits, hyphens and underscores. An IPv4 address passes.
 *
 * Units:  ${out} has SERVER_NAME_BYTES
 * Errors: 0; -EINVAL (not a host name)
 */
int server_name_read(char *out, const char *name, size_t len) NODISCARD;

/*
 * server_name_read_pattern(out, pattern, len):
 * As server_name_read(), for an exact name or a wildcard.
 *
 * Errors: 0; -EINVAL
 */
int server_name_read_pattern(char *out, const char *pattern, size_t len) NODISCARD;

/*
 * server_name_matches(pattern, name):
 * Is ${name} equal to ${pattern}, or one label below a wildcard ${pattern}? The functions above
 * have written both.
 */
bool server_name_matches(const char *pattern, const char *name);

/*
 * server_name_is_wildcard(pattern):
 * Is ${pattern}, written by server_name_read_pattern(), a wildcard?
 */
static inline bool server_name_is_wildcard(const char *pattern)
{
    return pattern[0] == '*';
}

#endif
