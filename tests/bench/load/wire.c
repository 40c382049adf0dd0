#include "load/wire.h"

#include "common/die.h"
#include "common/net.h"
#include "load/load.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static SSL_CTX *context; /* NULL: plain */
static bool is_resuming;

/* The session belongs to ${conn} from here on. */
static int wire_on_session(SSL *ssl, SSL_SESSION *session)
{
    struct conn *conn = SSL_get_app_data(ssl);

    SSL_SESSION_free(conn->session);
    conn->session = session;
    return 1;
}

void wire_init(const struct options *opts)
{
    if (!opts->tls)
        return;
    is_resuming = opts->resume;
    context = SSL_CTX_new(TLS_client_method());
    if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") ||
        !SSL_CTX_set1_groups_list(context, "X25519"))
        die("OpenSSL refuses the client's settings");
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    if (!is_resuming)
        return;
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, wire_on_session);
}

void wire_open(struct conn *conn)
{
    if (!context)
        return;
    conn->ssl = SSL_new(context);
    if (!conn->ssl || !SSL_set_fd(conn->ssl, conn->fd))
        die("SSL_new");
    SSL_set_app_data(conn->ssl, conn);
    SSL_set_connect_state(conn->ssl);
    conn->is_offering = is_resuming && conn->session;
    if (conn->is_offering && !SSL_set_session(conn->ssl, conn->session))
        die("SSL_set_session");
}

/* The result of SSL_read or SSL_write as recv or send would give it. */
static ssize_t wire_failed(struct conn *conn, int result)
{
    switch (SSL_get_error(conn->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: errno = EAGAIN; return -1;
    case SSL_ERROR_ZERO_RETURN: return 0;
    case SSL_ERROR_SYSCALL: return errno ? -1 : 0;
    default: die("connection %u: %s", conn->seed, ERR_reason_error_string(ERR_peek_error()));
    }
}

ssize_t wire_send(struct conn *conn, const void *data, size_t len)
{
    size_t sent = 0;

    if (!conn->ssl)
        return send(conn->fd, data, len, MSG_NOSIGNAL);
    errno = 0;
    while (sent < len) {
        int result = SSL_write(conn->ssl, (const uint8_t *)data + sent, (int)(len - sent));

        if (result <= 0)
            return sent ? (ssize_t)sent : wire_failed(conn, result);
        sent += (size_t)result;
    }
    return (ssize_t)sent;
}

ssize_t wire_recv(struct conn *conn, void *data, size_t len)
{
    size_t got = 0;

    if (!conn->ssl)
        return recv(conn->fd, data, len, 0);
    errno = 0;
    while (got < len) {
        int result = SSL_read(conn->ssl, (uint8_t *)data + got, (int)(len - got));

        if (result <= 0)
            return got ? (ssize_t)got : wire_failed(conn, result);
        got += (size_t)result;
    }
    return (ssize_t)got;
}

uint32_t wire_blocked(const struct conn *conn)
{
    return conn->ssl && SSL_want_read(conn->ssl) ? EPOLLIN : EPOLLIN | EPOLLOUT;
}

void wire_shutdown(struct conn *conn)
{
    if (conn->ssl && SSL_shutdown(conn->ssl) < 0)
        die("connection %u: no close_notify", conn->seed);
    shutdown(conn->fd, SHUT_WR);
}

void wire_reset(struct conn *conn)
{
    if (conn->ssl) {
        if (conn->is_offering && !SSL_session_reused(conn->ssl))
            die("connection %u: the session was not resumed", conn->seed);
        /* Otherwise the library takes the end for an error, and forgets the session. */
        SSL_set_shutdown(conn->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(conn->ssl);
        conn->ssl = NULL;
    }
    net_reset(conn->fd);
}
