/*
 * relay_tls: TLS towards clients, plain towards servers. The library reads from and writes to the
 * socket itself (its socket BIO), a record at a time, as in most servers.
 */
#include "bare/held.h"
#include "bare/relay.h"
#include "common/die.h"
#include "common/net.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

static SSL_CTX *context;
static SSL **by_fd; /* NULL: plain */
static uint8_t scratch[RELAY_BYTES];

void relay_tls_init(const char *certificate)
{
    by_fd = calloc((size_t)net_raise_nofile(), sizeof(SSL *));
    context = SSL_CTX_new(TLS_server_method());
    if (!by_fd || !context)
        die("no memory");
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, certificate, SSL_FILETYPE_PEM) != 1)
        die("%s: not a certificate and its key", certificate);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* tickets only */
}

static void tls_open(int fd)
{
    by_fd[fd] = SSL_new(context);
    if (!by_fd[fd] || !SSL_set_fd(by_fd[fd], fd))
        die("SSL_new");
    SSL_set_accept_state(by_fd[fd]); /* the first SSL_read makes the handshake */
}

static void tls_end(int fd)
{
    if (by_fd[fd])
        SSL_shutdown(by_fd[fd]);
}

static void tls_close(int fd)
{
    SSL_free(by_fd[fd]);
    by_fd[fd] = NULL;
}

/* The result of SSL_read or SSL_write as recv or send would give it. */
static ssize_t tls_failed(SSL *ssl, int result)
{
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: errno = EAGAIN; return -1;
    case SSL_ERROR_ZERO_RETURN: return 0;
    default: errno = EPROTO; return -1;
    }
}

/* Whole records, as many as there are and fit: so none is left over inside the library. */
static ssize_t tls_read(int fd)
{
    SSL *ssl = by_fd[fd];
    size_t got = 0;

    if (!ssl)
        return recv(fd, scratch, sizeof(scratch), 0);
    while (got + SSL3_RT_MAX_PLAIN_LENGTH <= sizeof(scratch)) {
        int result = SSL_read(ssl, scratch + got, SSL3_RT_MAX_PLAIN_LENGTH);

        if (result <= 0)
            return got ? (ssize_t)got : tls_failed(ssl, result);
        got += (size_t)result;
    }
    return (ssize_t)got;
}

static ssize_t tls_write(int fd, const uint8_t *data, size_t len)
{
    SSL *ssl = by_fd[fd];
    size_t sent = 0;

    if (!ssl)
        return send(fd, data, len, MSG_NOSIGNAL);
    while (sent < len) {
        int result = SSL_write(ssl, data + sent, (int)(len - sent));

        if (result <= 0)
            return sent ? (ssize_t)sent : tls_failed(ssl, result);
        sent += (size_t)result;
    }
    return (ssize_t)sent;
}

static enum relay_result tls_move(int from, int to, void **held)
{
    ssize_t got = tls_read(from);
    ssize_t sent;

    if (got == 0)
        return RELAY_EOF;
    if (got < 0)
        return errno == EAGAIN ? RELAY_DONE : RELAY_ERROR;
    sent = tls_write(to, scratch, (size_t)got);
    if (sent == got)
        return (size_t)got + SSL3_RT_MAX_PLAIN_LENGTH > RELAY_BYTES ? RELAY_FULL : RELAY_DONE;
    if (sent < 0 && errno != EAGAIN)
        return RELAY_ERROR;
    if (sent < 0)
        sent = 0;
    *held = held_new(scratch + sent, (size_t)(got - sent));
    return RELAY_BLOCKED;
}

static void tls_drop(void **held)
{
    free(*held);
    *held = NULL;
}

static enum relay_result tls_flush(int to, void **held)
{
    struct held *h = *held;
    ssize_t sent = tls_write(to, h->data + h->sent_bytes, h->len_bytes - h->sent_bytes);

    if (sent < 0)
        return errno == EAGAIN ? RELAY_BLOCKED : RELAY_ERROR;
    h->sent_bytes += (size_t)sent;
    if (h->sent_bytes < h->len_bytes)
        return RELAY_BLOCKED;
    tls_drop(held);
    return RELAY_DONE;
}

const struct relay relay_tls = {.move = tls_move,
                                .flush = tls_flush,
                                .drop = tls_drop,
                                .open = tls_open,
                                .end = tls_end,
                                .close = tls_close};
