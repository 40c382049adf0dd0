#include "tls/tls_why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <openssl/err.h>

int tls_why_refuse(const struct tls_why *why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why->text, why->size, format, args);
    va_end(args);
    ERR_clear_error();
    return -EINVAL;
}

const char *tls_why_library(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());

    return reason ? reason : "unknown cause";
}

int tls_why_memory(const struct tls_why *why)
{
    snprintf(why->text, why->size, "no memory");
    ERR_clear_error();
    return -ENOMEM;
}
