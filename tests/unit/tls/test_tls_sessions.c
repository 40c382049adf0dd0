/* tls/tls_sessions: which sessions of a server are resumed, and how often. */
#include "tls/tls_sessions.h"

#include <openssl/ssl.h>

#include "support/certificates.h"
#include "support/suite.h"

static struct certificate certificate;
static SSL_CTX *server_context, *contexts[2]; /* of the client */
static struct tls_sessions *sessions;

static SSL_CTX *new_client(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    tls_sessions_enable(ctx);
    return ctx;
}

static void setup(void)
{
    certificates_make(&certificate, &(struct certificate_wish){.name = "a.example"});
    server_context = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(server_context, certificate.x509);
    SSL_CTX_use_PrivateKey(server_context, certificate.key);
    for (int i = 0; i < 2; i++)
        contexts[i] = new_client();
    ck_assert_int_eq(tls_sessions_create(&sessions), 0);
}

static void teardown(void)
{
    tls_sessions_release(sessions);
    for (int i = 0; i < 2; i++)
        SSL_CTX_free(contexts[i]);
    SSL_CTX_free(server_context);
    certificates_free(&certificate);
}

GROUP(resuming, setup, teardown);

/* One connection that ends without close_notify; was its session an earlier one? */
static bool connects(SSL_CTX *ctx, const char *name, int version)
{
    SSL *client = SSL_new(ctx), *server = SSL_new(server_context);
    BIO *a, *b;
    bool reused;
    int done[2];
    char byte;

    ck_assert_int_eq(BIO_new_bio_pair(&a, 1 << 16, &b, 1 << 16), 1);
    SSL_set_bio(client, a, a);
    SSL_set_bio(server, b, b);
    SSL_set_max_proto_version(client, version);
    SSL_set_connect_state(client);
    SSL_set_accept_state(server);
    tls_sessions_use(sessions, client, name);
    do {
        done[0] = SSL_do_handshake(client);
        done[1] = SSL_do_handshake(server);
    } while (done[0] != 1 || done[1] != 1);
    ck_assert_int_le(SSL_read(client, &byte, 1), 0); /* takes the tickets */
    reused = SSL_session_reused(client);
    ck_assert_int_eq(reused, SSL_session_reused(server));
    SSL_free(client);
    SSL_free(server);
    return reused;
}

TEST_RANGE(resuming, later_connections_resume_a_session, TLS1_2_VERSION, TLS1_3_VERSION + 1)
{
    ck_assert(!connects(contexts[0], "a.example", _i));
    for (int i = 0; i < 5; i++)
        ck_assert(connects(contexts[0], "a.example", _i));
}

TEST_RANGE(resuming, a_session_is_only_for_its_context_and_name, TLS1_2_VERSION, TLS1_3_VERSION + 1)
{
    ck_assert(!connects(contexts[0], "a.example", _i));
    ck_assert(!connects(contexts[0], "b.example", _i));
    ck_assert(connects(contexts[0], "b.example", _i));
    ck_assert(!connects(contexts[1], "b.example", _i));
    ck_assert(!connects(contexts[1], NULL, _i));
    ck_assert(connects(contexts[1], NULL, _i));
    ck_assert(!connects(contexts[0], "a.example", _i));
}

/* Two connections at a time: the second gets another ticket, and the fourth none. */
TEST(resuming, tls_1_3_session_is_resumed_once)
{
    SSL *under_way[3];

    ck_assert(!connects(contexts[0], NULL, TLS1_3_VERSION));
    for (int i = 0; i < 3; i++) {
        under_way[i] = SSL_new(contexts[0]);
        tls_sessions_use(sessions, under_way[i], NULL);
        ck_assert_int_eq(SSL_get_session(under_way[i]) != NULL, i < 2); /* two tickets */
    }
    for (int i = 0; i < 3; i++)
        SSL_free(under_way[i]);
}

/* A connection from before the change brings a session that was not made for the new name. */
TEST(resuming, a_late_session_for_another_name_is_not_kept)
{
    SSL *late = SSL_new(contexts[0]), *server = SSL_new(server_context);
    BIO *a, *b;
    int done[2];
    char byte;

    ck_assert_int_eq(BIO_new_bio_pair(&a, 1 << 16, &b, 1 << 16), 1);
    SSL_set_bio(late, a, a);
    SSL_set_bio(server, b, b);
    SSL_set_connect_state(late);
    SSL_set_accept_state(server);
    tls_sessions_use(sessions, late, "a.example");
    do {
        done[0] = SSL_do_handshake(late);
        done[1] = SSL_do_handshake(server);
    } while (done[0] != 1 || done[1] != 1);
    ck_assert(!connects(contexts[0], "b.example", TLS1_2_VERSION));
    ck_assert_int_le(SSL_read(late, &byte, 1), 0); /* two tickets of 1.3, for a.example */
    ck_assert(connects(contexts[0], "b.example", TLS1_2_VERSION));
    tls_sessions_release(sessions); /* the connection has its own reference */
    SSL_free(late);
    SSL_free(server);
    ck_assert_int_eq(tls_sessions_create(&sessions), 0);
}
