#include "tls/tls_common_name.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/x509.h>

size_t tls_common_name(char *out, const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int i = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    unsigned char *text = NULL;
    size_t len = 0;
    int n;

    if (i >= 0) {
        n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, i)));
        if (n > 0 && n < TLS_COMMON_NAME_BYTES && !memchr(text, '\0', (size_t)n))
            len = (size_t)n;
        if (n < 0)
            ERR_clear_error();
    }
    if (len > 0)
        memcpy(out, text, len);
    out[len] = '\0';
    OPENSSL_free(text);
    return len;
}
