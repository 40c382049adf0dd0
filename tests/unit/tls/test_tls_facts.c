/* tls/tls_facts, tls/tls_hello: what is known of a client when its handshake is done. */
#include "tls/tls_facts.h"

#include <openssl/asn1.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "support/certificates.h"
#include "support/hellos.h"
#include "support/suite.h"
#include "tls/tls_hello.h"
#include "tls/tls_stream.h"

static struct certificate server, client;
static SSL_CTX *contexts[2]; /* of the server, of the client */
static struct tls_stream *stream;
static SSL *peer;
static SSL_SESSION *session; /* of the client, to be resumed */
static struct tls_facts *facts;

static int accept_all(int ok, X509_STORE_CTX *ctx)
{
    (void)ok, (void)ctx;
    return 1;
}

static void setup(void)
{
    certificates_make(&server, &(struct certificate_wish){.name = "a.example"});
    certificates_make(&client, &(struct certificate_wish){.name = "the client"});
    contexts[0] = SSL_CTX_new(TLS_server_method());
    contexts[1] = SSL_CTX_new(TLS_client_method());
    SSL_CTX_use_certificate(contexts[0], server.x509);
    SSL_CTX_use_PrivateKey(contexts[0], server.key);
    SSL_CTX_set_verify(contexts[0], SSL_VERIFY_PEER, accept_all);
    SSL_CTX_set_session_id_context(contexts[0], (const unsigned char *)"x", 1);
}

static void disconnect(void)
{
    tls_stream_free(stream);
    if (peer)
        SSL_set_shutdown(peer, SSL_SENT_SHUTDOWN); /* else its session is not resumed */
    SSL_free(peer);
    free(facts);
    stream = NULL;
    peer = NULL;
    facts = NULL;
}

static void teardown(void)
{
    disconnect();
    SSL_SESSION_free(session);
    session = NULL;
    for (int i = 0; i < 2; i++)
        SSL_CTX_free(contexts[i]);
    certificates_free(&server);
    certificates_free(&client);
}

/* The handshake, and the tickets behind it. */
static void shake(void)
{
    bool done = false;

    for (int i = 0; i < 10; i++) {
        uint8_t bytes[16384];
        const uint8_t *records;
        char byte;
        size_t n;
        int len;

        (void)(SSL_is_init_finished(peer) ? SSL_read(peer, &byte, 1) : SSL_connect(peer));
        len = BIO_read(SSL_get_wbio(peer), bytes, sizeof(bytes));
        if (done || len <= 0)
            continue;
        tls_stream_input(stream, bytes, (size_t)len);
        done = tls_stream_handshake(stream) == TLS_STREAM_DONE;
        records = tls_stream_output(stream, &n);
        BIO_write(SSL_get_rbio(peer), records, (int)n);
    }
    ck_assert(done);
}

static void connect_client(int version, bool with_certificate)
{
    SSL *ssl = SSL_new(contexts[0]);

    SSL_set_accept_state(ssl);
    ck_assert_int_eq(tls_stream_create(&stream, ssl), 0);
    peer = SSL_new(contexts[1]);
    SSL_set_max_proto_version(peer, version);
    SSL_set_bio(peer, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (with_certificate) {
        SSL_use_certificate(peer, client.x509);
        SSL_use_PrivateKey(peer, client.key);
    }
    if (session)
        SSL_set_session(peer, session);
    shake();
    ck_assert_int_eq(tls_facts_create(&facts, stream), 0);
}

static void expect_text(const char *text, const char *expected)
{
    ck_assert_pstr_eq(text, expected);
}

GROUP(a_handshake, setup, teardown);

TEST(a_handshake, facts_are_those_negotiated)
{
    SSL_CTX_set_ciphersuites(contexts[1], "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set1_groups_list(contexts[1], "P-256");
    connect_client(TLS1_3_VERSION, false);
    expect_text(facts->version, "TLSv1.3");
    expect_text(facts->cipher, "TLS_AES_128_GCM_SHA256");
    expect_text(facts->group, "secp256r1");
    expect_text(facts->alpn, NULL);
    expect_text(facts->name, NULL);
    expect_text(facts->fingerprint, NULL);
    ck_assert(!facts->resumed && !facts->has_certificate && facts->verify != 0);
}

TEST(a_handshake, facts_outlive_their_context)
{
    SSL_CTX_set1_groups_list(contexts[1], "P-256");
    connect_client(TLS1_3_VERSION, false);
    tls_stream_free(stream);
    SSL_CTX_free(contexts[0]);
    stream = NULL;
    contexts[0] = NULL;
    expect_text(facts->version, "TLSv1.3");
    expect_text(facts->group, "secp256r1");
}

TEST(a_handshake, without_a_group_none_is_named)
{
    certificates_free(&server);
    certificates_make(&server, &(struct certificate_wish){.name = "a.example", .is_rsa = true});
    SSL_CTX_use_certificate(contexts[0], server.x509);
    SSL_CTX_use_PrivateKey(contexts[0], server.key);
    SSL_CTX_set_cipher_list(contexts[1], "AES128-GCM-SHA256");
    connect_client(TLS1_2_VERSION, false);
    expect_text(facts->version, "TLSv1.2");
    expect_text(facts->cipher, "AES128-GCM-SHA256");
    expect_text(facts->group, NULL);
}

/* 0: TLS 1.2, 1: 1.3. */
TEST_EACH(a_handshake, client_certificate_is_known_also_when_resumed, 2)
{
    int version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    uint8_t der[4096], *copy = der, hash[32];
    char hex[65];
    unsigned n;

    ck_assert_int_eq(X509_digest(client.x509, EVP_sha256(), hash, &n), 1);
    for (unsigned i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    for (int turn = 0; turn < 2; turn++) {
        uint8_t got[4096];
        size_t len;

        connect_client(version, true);
        ck_assert_int_eq(facts->resumed, turn == 1);
        ck_assert(facts->has_certificate);
        expect_text(facts->name, "the client");
        expect_text(facts->fingerprint, hex);
        len = tls_facts_certificate(stream, got, sizeof(got));
        copy = der;
        ck_assert_int_eq(i2d_X509(client.x509, &copy), len);
        ck_assert_mem_eq(got, der, len);
        ck_assert_uint_eq(tls_facts_certificate(stream, got, len - 1), 0);
        SSL_SESSION_free(session);
        session = SSL_get1_session(peer);
        disconnect();
    }
}

/* As text of ${bytes}; its length is that of the array, without the NUL at the end. */
#define NAME(type, bytes)              \
    {                                  \
        type, bytes, sizeof(bytes) - 1 \
    }
#define LETTERS_64 \
    "\xc3\xbc"     \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
    struct certificate_name name;
    const char *read; /* NULL: no name */
} common_names[] = {
    {NAME(V_ASN1_UTF8STRING, "J\xc3\xbcrgen"), "J\xc3\xbcrgen"},
    {NAME(V_ASN1_PRINTABLESTRING, "admin"), "admin"},
    {NAME(V_ASN1_BMPSTRING, "\0a\0d\0m\0i\x20\xac"), "admi\xe2\x82\xac"},
    {NAME(V_ASN1_UNIVERSALSTRING, "\0\0\0a\0\x01\xf6\x00"), "a\xf0\x9f\x98\x80"},
    {NAME(V_ASN1_T61STRING, "J\xfcrgen"), "J\xc3\xbcrgen"},
    {NAME(V_ASN1_UTF8STRING, LETTERS_64), LETTERS_64},
    {NAME(V_ASN1_UTF8STRING, "admin\0.evil"), NULL},
    {NAME(V_ASN1_PRINTABLESTRING, "admin\0"), NULL},
    {NAME(V_ASN1_BMPSTRING, "\0a\0\0\0b"), NULL},
    {NAME(V_ASN1_UTF8STRING, LETTERS_64 LETTERS_64 LETTERS_64 LETTERS_64), NULL},
};

TEST_EACH(a_handshake, common_name_is_read_whole_or_not_at_all, ARRAY_LEN(common_names))
{
    certificates_free(&client);
    certificates_make(&client, &(struct certificate_wish){.name = "host.example",
                                                          .common_name = &common_names[_i].name});
    connect_client(TLS1_3_VERSION, true);
    ck_assert(facts->has_certificate);
    expect_text(facts->name, common_names[_i].read);
    ck_assert_pstr_ne(facts->fingerprint, NULL);
}

GROUP(a_hello, NULL, NULL);

TEST_EACH(a_hello, hello_is_kept_with_its_fingerprint, HELLOS)
{
    uint8_t data[HELLO_MAX_BYTES];
    size_t len = hello_bytes(data, &hellos[_i]);
    struct tls_hello *hello;
    struct client_hello_bytes list, name;

    ck_assert_int_lt(tls_hello_create(&hello, data, len - 1), 0);
    ck_assert_int_eq(tls_hello_create(&hello, data, len), 0);
    memset(data, 0, sizeof(data));
    expect_text(hello->sni, hellos[_i].sni);
    expect_text(hello->ja4, hellos[_i].ja4);
    list = hello->alpn;
    ck_assert_int_eq(client_hello_alpn_next(&list, &name), hellos[_i].alpn[0] != '\0');
    if (hellos[_i].alpn[0] != '\0')
        ck_assert_mem_eq(name.at, hellos[_i].alpn, name.n);
    free(hello);
}

/* The extension server_name: lengths of a list and of a name, and a type, before the name. */
TEST(a_hello, agrees_with_no_malformed_server_name)
{
    static const uint8_t right[] = "\0\017\0\0\014curl.example";
    static const uint8_t cut[] = "\0\017\0\0\014curl";
    const struct client_hello_bytes none = {.at = NULL};
    uint8_t data[HELLO_MAX_BYTES];
    size_t len = hello_bytes(data, &hellos[1]); /* without a name */
    struct tls_hello *hello;

    ck_assert_int_eq(tls_hello_create(&hello, data, len), 0);
    ck_assert(tls_hello_agrees(hello, none, hello->alpn));
    ck_assert(!tls_hello_agrees(
        hello, (struct client_hello_bytes){.at = right, .n = sizeof(right) - 1}, none));
    ck_assert(!tls_hello_agrees(hello, (struct client_hello_bytes){.at = cut, .n = sizeof(cut) - 1},
                                none));
    tls_hello_release(hello);
}

/* The extension ALPN has the length of its list before the list. */
TEST_EACH(a_hello, agrees_with_its_own_extensions, HELLOS)
{
    uint8_t data[HELLO_MAX_BYTES], name[300] = {0}, alpn[300] = {0};
    size_t len = hello_bytes(data, &hellos[_i]), name_len = strlen(hellos[_i].sni);
    struct client_hello_bytes server_name = {.at = name}, protocols = {.at = alpn};
    struct tls_hello *hello;

    ck_assert_int_eq(tls_hello_create(&hello, data, len), 0);
    if (name_len > 0) {
        name[1] = (uint8_t)(name_len + 3);
        name[4] = (uint8_t)name_len;
        memcpy(name + 5, hellos[_i].sni, name_len);
        server_name.n = name_len + 5;
    }
    if (hello->alpn.n > 0) {
        memcpy(alpn + 2, hello->alpn.at, hello->alpn.n);
        protocols.n = hello->alpn.n + 2;
    }
    ck_assert(tls_hello_agrees(hello, server_name, protocols));
    protocols.n++;
    ck_assert(!tls_hello_agrees(hello, server_name, protocols));
    tls_hello_release(hello);
}
