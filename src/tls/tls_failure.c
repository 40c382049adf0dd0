#include "tls/tls_failure.h"

#include <openssl/ssl.h>
#include <stdio.h>

/* OpenSSL 3.0 has no names for alerts of TLS 1.3 and ALPN. */
static const char *tls_failure_name(int alert)
{
    switch (alert) {
    case SSL_AD_MISSING_EXTENSION: return "missing extension";
    case SSL_AD_CERTIFICATE_REQUIRED: return "certificate required";
    case SSL_AD_NO_APPLICATION_PROTOCOL: return "no application protocol";
    default: return SSL_alert_desc_string_long(alert);
    }
}

const char *tls_failure_text(const struct tls_failure *f, char *text, size_t size)
{
    const char *reason = f->reason[0] ? f->reason : "protocol error";

    if (f->alert < 0)
        snprintf(text, size, "%s", reason);
    else
        snprintf(text, size, "%s (alert %s: %s)", reason, f->alert_received ? "received" : "sent",
                 tls_failure_name(f->alert));
    return text;
}

const char *tls_failure_alert(const struct tls_failure *f)
{
    return f->alert < 0 ? NULL : tls_failure_name(f->alert);
}
