/*
 * tls/tls_why: why a profile is refused: text for the operator, with file and cause.
 */
#ifndef TLS_TLS_WHY_H
#define TLS_TLS_WHY_H

#include <stddef.h>

#include "base/must.h"

struct tls_why {
    char *text;
    size_t size;
};

/*
 * tls_why_refuse(why, format, ...):
 * Write the text; forget the library's errors. Returns -EINVAL.
 *
 * Thread: any
 */
int tls_why_refuse(const struct tls_why *why, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * tls_why_library():
 * Return what the library said first of this thread's last failure, as "bad end line".
 *
 * Thread: any
 * Owns:   static text
 */
const char *tls_why_library(void);

/*
 * tls_why_memory(why):
 * Return -ENOMEM, with its text.
 *
 * Thread: any
 */
int tls_why_memory(const struct tls_why *why);

#endif
