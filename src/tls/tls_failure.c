#include "tls/tls_failure.h"

#include <openssl/ssl.h>
#include <stdio.h>

const char *tls_failure_text(const struct tls_failure *f, char *text, size_t size)
{
    const char *reason = f->reason[0] ? f->reason : "protocol error";

    if (f->alert < 0)
        snprintf(text, size, "%s", reason);
    else
        snprintf(text, size, "%s (alert %s: %s)", reason, f->alert_received ? "received" : "sent",
                 SSL_alert_desc_string_long(f->alert));
    return text;
}
