#include "tls/tls_bio.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <string.h>

static int tls_bio_read(BIO *bio, char *data, size_t len, size_t *done)
{
    struct tls_bio *io = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    *done = len < io->in_bytes ? len : io->in_bytes;
    if (*done == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(data, io->in, *done);
    io->in += *done;
    io->in_bytes -= *done;
    return 1;
}

static int tls_bio_write(BIO *bio, const char *data, size_t len, size_t *done)
{
    struct tls_bio *io = BIO_get_data(bio);
    size_t space = io->out_capacity - io->out_bytes;

    BIO_clear_retry_flags(bio);
    *done = len < space ? len : space;
    if (*done == 0) {
        BIO_set_retry_write(bio);
        return 0;
    }
    memcpy(io->out + io->out_bytes, data, *done);
    io->out_bytes += *done;
    return 1;
}

static long tls_bio_control(BIO *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH; /* other controls, such as those for kTLS, fail */
}

static BIO_METHOD *tls_bio_method;

static void tls_bio_make_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "reactord");

    if (!method)
        return;
    BIO_meth_set_read_ex(method, tls_bio_read);
    BIO_meth_set_write_ex(method, tls_bio_write);
    BIO_meth_set_ctrl(method, tls_bio_control);
    tls_bio_method = method;
}

struct bio_st *tls_bio_new(struct tls_bio *io)
{
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
    BIO *bio;

    if (!CRYPTO_THREAD_run_once(&once, tls_bio_make_method) || !tls_bio_method ||
        !(bio = BIO_new(tls_bio_method)))
        return NULL;
    BIO_set_data(bio, io);
    BIO_set_init(bio, 1);
    return bio;
}
