/*
 * Fuzz tls/client_hello beside OpenSSL: routes choose by the name that our parser finds, and the
 * certificate is chosen by what OpenSSL finds, so both must find the same, or one must refuse.
 */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/must.h"
#include "tls/client_hello.h"
#include "tls/server_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What OpenSSL has found. */
static struct {
    bool parsed, has_name;
    char name[TLSEXT_MAXLEN_host_name + 1];
} theirs;

/* The name as the library takes it; then it has parsed the hello. */
static int note_name(SSL *ssl, int *alert, void *cookie)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    (void)alert;
    (void)cookie;
    theirs.parsed = true;
    theirs.has_name = name != NULL;
    strcpy(theirs.name, name ? name : "");
    return SSL_TLSEXT_ERR_ALERT_FATAL; /* nothing behind it is asked */
}

static void read_theirs(const uint8_t *data, size_t size)
{
    static SSL_CTX *context;
    SSL *ssl;
    BIO *in;

    if (!context) {
        context = SSL_CTX_new(TLS_server_method());
        MUST(context != NULL);
        SSL_CTX_set_tlsext_servername_callback(context, note_name);
    }
    memset(&theirs, 0, sizeof(theirs));
    ssl = SSL_new(context);
    in = BIO_new_mem_buf(data, (int)size);
    MUST(ssl != NULL && in != NULL);
    SSL_set_bio(ssl, in, BIO_new(BIO_s_mem()));
    SSL_accept(ssl);
    SSL_free(ssl);
    ERR_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct client_hello_scan scan = {0};
    struct client_hello hello;
    char name[SERVER_NAME_BYTES] = "";
    int rc = client_hello_scan(&scan, data, size);

    if (rc < 0 || client_hello_read(&hello, &scan, data) < 0)
        return 0;
    read_theirs(data, (size_t)rc);
    if (theirs.parsed) {
        MUST(theirs.has_name == hello.has_sni);
        if (server_name_read(name, theirs.name, strlen(theirs.name)) < 0)
            name[0] = '\0';
        MUST(strcmp(name, hello.sni) == 0);
    }
    client_hello_free(&hello);
    return 0;
}
