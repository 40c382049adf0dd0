#include "tls/tls_sessions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/ssl.h>

#include "base/ref.h"
#include "engine/lock.h"
#include "tls/server_name.h"

struct tls_sessions {
    struct ref references;
    struct lock lock; /* guards the members below */
    uintptr_t change; /* number of changes of context or name */
    SSL_CTX *ctx;     /* context of all sessions, with a reference; NULL: no context yet */
    char name[SERVER_NAME_BYTES];
    SSL_SESSION *list[TLS_SESSIONS_MAX]; /* oldest first */
    unsigned n;
};

/* Indexes of an SSL's ex_data: its struct tls_sessions, and `change` when the connection began. */
static int tls_sessions_index = -1, tls_sessions_change_index = -1;

int tls_sessions_create(struct tls_sessions **out)
{
    struct tls_sessions *ts = calloc(1, sizeof(*ts));

    if (!ts)
        return -ENOMEM;
    ref_init(&ts->references);
    lock_init(&ts->lock);
    *out = ts;
    return 0;
}

static void tls_sessions_forget(struct tls_sessions *ts)
{
    for (unsigned i = 0; i < ts->n; i++)
        SSL_SESSION_free(ts->list[i]);
    ts->n = 0;
}

void tls_sessions_release(struct tls_sessions *ts)
{
    if (!ts || !ref_release(&ts->references))
        return;
    tls_sessions_forget(ts);
    SSL_CTX_free(ts->ctx);
    lock_close(&ts->lock);
    free(ts);
}

/* Locked. */
static void tls_sessions_remove(struct tls_sessions *ts, unsigned i)
{
    ts->n--;
    memmove(&ts->list[i], &ts->list[i + 1], (ts->n - i) * sizeof(SSL_SESSION *));
}

/* Locked. Are the sessions of ${ts} for the context of ${ssl} and for ${name}? */
static bool tls_sessions_fit(const struct tls_sessions *ts, const SSL *ssl, const char *name)
{
    return SSL_get_SSL_CTX(ssl) == ts->ctx && strcmp(ts->name, name ? name : "") == 0;
}

/* Locked. Drop all sessions; the next ones are for the context of ${ssl} and ${name}. */
static void tls_sessions_change(struct tls_sessions *ts, const SSL *ssl, const char *name)
{
    SSL_CTX *ctx = SSL_get_SSL_CTX(ssl);

    tls_sessions_forget(ts);
    ts->change++;
    SSL_CTX_free(ts->ctx);
    ts->ctx = SSL_CTX_up_ref(ctx) == 1 ? ctx : NULL;
    strncpy(ts->name, name ? name : "", sizeof(ts->name) - 1);
}

static time_t tls_sessions_began_at(const SSL_SESSION *session)
{
#if OPENSSL_VERSION_NUMBER >= 0x30300000L
    return SSL_SESSION_get_time_ex(session);
#else
    return SSL_SESSION_get_time(session);
#endif
}

static bool tls_sessions_has_expired(const SSL_SESSION *session)
{
    return time(NULL) >= tls_sessions_began_at(session) + SSL_SESSION_get_timeout(session);
}

/*
 * note: copies. The library marks the session of a connection that ends without close_notify as not
 * resumable. So the list has copies, and a TLS 1.2 connection gets a copy of one.
 */

/*
 * Locked. Return the newest session, for the caller to free; one of TLS 1.3 leaves the list. NULL:
 * no session.
 */
static SSL_SESSION *tls_sessions_take(struct tls_sessions *ts)
{
    while (ts->n > 0) {
        SSL_SESSION *session = ts->list[ts->n - 1];

        if (tls_sessions_has_expired(session) || !SSL_SESSION_is_resumable(session)) {
            tls_sessions_remove(ts, ts->n - 1);
            SSL_SESSION_free(session);
            continue;
        }
        if (SSL_SESSION_get_protocol_version(session) < TLS1_3_VERSION)
            return SSL_SESSION_dup(session); /* see note: copies */
        tls_sessions_remove(ts, ts->n - 1);
        return session;
    }
    return NULL;
}

void tls_sessions_use(struct tls_sessions *ts, SSL *ssl, const char *name)
{
    SSL_SESSION *session;
    uintptr_t change;

    ref_hold(&ts->references);
    if (SSL_set_ex_data(ssl, tls_sessions_index, ts) != 1) {
        tls_sessions_release(ts);
        return;
    }
    lock_take(&ts->lock);
    if (!tls_sessions_fit(ts, ssl, name))
        tls_sessions_change(ts, ssl, name);
    session = tls_sessions_take(ts);
    change = ts->change;
    lock_release(&ts->lock);
    if (SSL_set_ex_data(ssl, tls_sessions_change_index, (void *)change) == 1 && session)
        (void)SSL_set_session(ssl, session); /* on failure: a full handshake */
    SSL_SESSION_free(session);
}

/* Locked. */
static void tls_sessions_append(struct tls_sessions *ts, SSL_SESSION *session)
{
    if (ts->n == TLS_SESSIONS_MAX) {
        SSL_SESSION_free(ts->list[0]);
        tls_sessions_remove(ts, 0);
    }
    ts->list[ts->n++] = session;
}

/* Keep a copy (note: copies) if context and name are as when the connection began. */
static int tls_sessions_on_new(SSL *ssl, SSL_SESSION *session)
{
    struct tls_sessions *ts = SSL_get_ex_data(ssl, tls_sessions_index);
    SSL_SESSION *copy = ts ? SSL_SESSION_dup(session) : NULL;

    if (!copy)
        return 0;
    lock_take(&ts->lock);
    if ((uintptr_t)SSL_get_ex_data(ssl, tls_sessions_change_index) == ts->change) {
        tls_sessions_append(ts, copy);
        copy = NULL;
    }
    lock_release(&ts->lock);
    SSL_SESSION_free(copy);
    return 0;
}

static void tls_sessions_on_free(void *parent, void *value, CRYPTO_EX_DATA *data, int index,
                                 long argl, void *argp)
{
    (void)parent;
    (void)data;
    (void)index;
    (void)argl;
    (void)argp;
    tls_sessions_release(value);
}

static void tls_sessions_get_index(void)
{
    tls_sessions_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, tls_sessions_on_free);
    tls_sessions_change_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

void tls_sessions_enable(SSL_CTX *ctx)
{
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;

    CRYPTO_THREAD_run_once(&once, tls_sessions_get_index);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, tls_sessions_on_new);
}
