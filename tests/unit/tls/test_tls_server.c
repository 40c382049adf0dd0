/* tls/tls_server: one name for routes, log and certificate; sessions; ciphers; revocation lists. */
#include <errno.h>
#include <string.h>

#include <openssl/ssl.h>

#include "support/certificates.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "tls/tls_failure.h"
#include "tls/tls_hello.h"
#include "tls/tls_profile.h"
#include "tls/tls_stream.h"

static struct certificate ca, leaf;
static struct tls_profile *server, *client;
static SSL *at_client;
static struct tls_stream *stream;
static char why[512];

static const char *certificates[] = {"a.pem"};
static struct tls_profile_conf server_conf = {
    .name = "s", .for_clients = true, .certificates = {certificates, 1}};
static struct tls_profile_conf client_conf = {
    .name = "c", .for_servers = true, .verify = TLS_VERIFY_OFF};

static void setup(void)
{
    text_file_enter();
    certificates_make(&ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificates_make(&leaf, &(struct certificate_wish){.name = "a.example", .issuer = &ca});
    certificates_write("ca.pem", "c", &ca);
    certificates_write("a.pem", "ck", &leaf, &leaf);
}

static void teardown(void)
{
    tls_stream_free(stream);
    SSL_free(at_client);
    tls_profile_release(server);
    tls_profile_release(client);
    certificates_free(&leaf);
    certificates_free(&ca);
    text_file_leave();
}

static void load(void)
{
    ck_assert_msg(tls_profile_load(&server_conf, &server, why, sizeof(why)) == 0, "%s", why);
    ck_assert_msg(tls_profile_load(&client_conf, &client, why, sizeof(why)) == 0, "%s", why);
}

GROUP(server, setup, teardown);

static enum tls_stream_result give(const uint8_t *data, size_t len)
{
    tls_stream_input(stream, data, len);
    return tls_stream_handshake(stream);
}

/* A new server's end, for a client whose first bytes these are. */
static void open_stream(const uint8_t *data, size_t len)
{
    struct tls_hello *hello = NULL;

    tls_stream_free(stream);
    ck_assert_int_eq(tls_stream_create(&stream, tls_profile_new_server(server)), 0);
    (void)!tls_hello_create(&hello, data, len);
    tls_stream_set_hello(stream, hello);
    tls_hello_release(hello);
}

/* One flight of the client and the answer to it. */
static enum tls_stream_result exchange(bool is_first)
{
    static uint8_t data[16384];
    enum tls_stream_result result;
    const uint8_t *records;
    size_t n;
    int got = BIO_read(SSL_get_wbio(at_client), data, sizeof(data));

    if (is_first)
        open_stream(data, (size_t)got);
    result = give(data, got > 0 ? (size_t)got : 0);
    records = tls_stream_output(stream, &n);
    if (n > 0)
        ck_assert_int_eq(BIO_write(SSL_get_rbio(at_client), records, (int)n), (int)n);
    return result;
}

/* True: both sides finished. */
static bool shake(const char *name, int version, SSL_SESSION *session)
{
    enum tls_stream_result result = TLS_STREAM_INPUT;
    int c = 0;

    SSL_free(at_client);
    at_client = tls_profile_new_client(client, name, CLIENT_HELLO_NONE);
    ck_assert_ptr_nonnull(at_client);
    SSL_set_max_proto_version(at_client, version);
    ck_assert(!session || SSL_set_session(at_client, session) == 1);
    SSL_set_bio(at_client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    for (int i = 0; i < 6 && (c != 1 || result != TLS_STREAM_DONE); i++) {
        c = SSL_do_handshake(at_client);
        if (result == TLS_STREAM_INPUT)
            result = exchange(i == 0);
    }
    SSL_set_shutdown(at_client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* its session stays */
    return c == 1 && result == TLS_STREAM_DONE;
}

static bool is_resumed(void)
{
    return SSL_session_reused(tls_stream_ssl(stream)) == 1;
}

/* ---- resumption ---- */

static SSL_SESSION *session_of(const char *name)
{
    SSL_SESSION *session;

    ck_assert(shake(name, TLS1_2_VERSION, NULL));
    session = SSL_get1_session(at_client);
    ck_assert(SSL_SESSION_has_ticket(session));
    return session;
}

TEST(server, tls_1_2_session_is_resumed_for_its_own_name_only)
{
    SSL_SESSION *session;

    load();
    session = session_of("a.example");
    ck_assert(shake("A.example", TLS1_2_VERSION, session));
    ck_assert(is_resumed());
    ck_assert(shake("b.example", TLS1_2_VERSION, session));
    ck_assert(!is_resumed());
    SSL_SESSION_free(session);
    session = session_of("b.example");
    ck_assert(shake("a.example", TLS1_2_VERSION, session));
    ck_assert(!is_resumed());
    SSL_SESSION_free(session);
}

TEST(server, resumption_does_not_bypass_unknown_name_reject)
{
    SSL_SESSION *session;

    server_conf.unknown_name = TLS_UNKNOWN_NAME_REJECT;
    load();
    session = session_of("a.example");
    ck_assert(shake("a.example", TLS1_2_VERSION, session));
    ck_assert(is_resumed());
    ck_assert(!shake("b.example", TLS1_2_VERSION, session));
    SSL_SESSION_free(session);
}

/* ---- ClientHello ---- */

/* The first flight of a new client, in out of BYTES; returns its length. */
static size_t flight(uint8_t *out, size_t size, const char *name, const char *groups)
{
    SSL *ssl = tls_profile_new_client(client, name, CLIENT_HELLO_NONE);
    BIO *in = BIO_new(BIO_s_mem()), *written = BIO_new(BIO_s_mem());
    int n;

    ck_assert(ssl && in && written);
    if (groups)
        ck_assert_int_eq(SSL_set1_groups_list(ssl, groups), 1);
    SSL_set_bio(ssl, in, written);
    SSL_do_handshake(ssl);
    n = BIO_read(written, out, (int)size);
    ck_assert_int_gt(n, 0);
    SSL_free(ssl);
    return (size_t)n;
}

static const struct {
    const char *name;
    enum tls_stream_result result;
} second[] = {
    {"a.example", TLS_STREAM_INPUT}, {"b.example", TLS_STREAM_FAILED}, {NULL, TLS_STREAM_FAILED}};

TEST_EACH(server, the_second_hello_has_the_name_of_the_first, ARRAY_LEN(second))
{
    uint8_t data[4096];
    char text[TLS_FAILURE_TEXT_BYTES];
    size_t n;

    server_conf.groups = "P-384";
    load();
    n = flight(data, sizeof(data), "a.example",
               "P-256:P-384"); /* a HelloRetryRequest asks for P-384 */
    open_stream(data, n);
    ck_assert_int_eq(give(data, n), TLS_STREAM_INPUT);
    n = flight(data, sizeof(data), second[_i].name, "P-384");
    ck_assert_int_eq(give(data, n), second[_i].result);
    if (second[_i].result == TLS_STREAM_FAILED)
        ck_assert_str_eq(tls_failure_text(tls_stream_failure(stream), text, sizeof(text)),
                         "the second ClientHello has another server name or other protocols "
                         "(alert sent: illegal parameter)");
}

/* The library ignores extensions that it does not know, however often they come. */
TEST(server, a_hello_with_a_repeated_extension_is_refused_with_an_alert)
{
    static const uint8_t unknown[] = {0xfa, 0xce, 0, 0, 0xfa, 0xce, 0, 0};
    uint8_t data[4096];
    char text[TLS_FAILURE_TEXT_BYTES];
    size_t n, at;

    load();
    n = flight(data, sizeof(data), "a.example", NULL);
    at = 5 + 4 + 2 + 32; /* the session ID, the ciphers and the compressions follow */
    at += 1U + data[at];
    at += 2 + (size_t)(data[at] << 8 | data[at + 1]);
    at += 1U + data[at];
    memmove(data + at + 2 + sizeof(unknown), data + at + 2, n - at - 2);
    memcpy(data + at + 2, unknown, sizeof(unknown));
    n += sizeof(unknown);
    data[at] = (uint8_t)((n - at - 2) >> 8);
    data[at + 1] = (uint8_t)(n - at - 2);
    data[3] = (uint8_t)((n - 5) >> 8);
    data[4] = (uint8_t)(n - 5);
    data[7] = (uint8_t)((n - 9) >> 8);
    data[8] = (uint8_t)(n - 9);
    open_stream(data, n);
    ck_assert_int_eq(give(data, n), TLS_STREAM_FAILED);
    ck_assert_str_eq(tls_failure_text(tls_stream_failure(stream), text, sizeof(text)),
                     "the ClientHello is malformed (alert sent: decode error)");
}

/* ---- ciphers ---- */

static const struct {
    const char *ciphers;
    bool is_rsa, works;
} lists[] = {
    {"ECDHE-RSA-AES128-GCM-SHA256", true, true},
    {"ECDHE-RSA-AES128-GCM-SHA256", false, false},
    {"ECDHE-ECDSA-AES128-GCM-SHA256", true, false},
    {"ECDHE-ECDSA-AES128-GCM-SHA256", false, true},
    {"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", true, true},
    {"DHE-RSA-AES128-GCM-SHA256", true, true},
    {"DHE-RSA-AES128-GCM-SHA256", false, false},
    {"PSK-AES128-GCM-SHA256", true, false},
    {"ECDHE-PSK-CHACHA20-POLY1305", false, false},
    {"DHE-PSK-AES128-GCM-SHA256:RSA-PSK-AES128-GCM-SHA256", true, false},
    {"TLS_AES_128_GCM_SHA256", true, true},
};

/* A list is refused exactly if no handshake of TLS 1.2 can succeed with it. */
TEST_EACH(server, ciphers_that_no_key_can_serve_are_refused, ARRAY_LEN(lists))
{
    int rc;

    certificates_free(&leaf);
    certificates_make(&leaf,
                      &(struct certificate_wish){.name = "a.example", .is_rsa = lists[_i].is_rsa});
    certificates_write("a.pem", "ck", &leaf, &leaf);
    server_conf.ciphers = lists[_i].ciphers;
    rc = tls_profile_load(&server_conf, &server, why, sizeof(why));
    ck_assert_int_eq(rc, lists[_i].works ? 0 : -EINVAL);
    if (rc < 0) {
        ck_assert_str_eq(why,
                         "ciphers: no cipher for TLS 1.2 works with the keys of the certificates");
        server_conf.min_version = TLS_VERSION_1_3;
        ck_assert_int_eq(tls_profile_load(&server_conf, &server, why, sizeof(why)), 0);
        return;
    }
    client_conf.ciphers = "ALL";
    ck_assert_int_eq(tls_profile_load(&client_conf, &client, why, sizeof(why)), 0);
    ck_assert(shake("a.example", TLS1_2_VERSION, NULL));
}

TEST(server, ciphers_of_servers_need_a_certificate)
{
    client_conf.ciphers = "PSK-AES128-GCM-SHA256";
    ck_assert_int_eq(tls_profile_load(&client_conf, &client, why, sizeof(why)), -EINVAL);
    ck_assert_str_eq(why, "ciphers: no cipher for TLS 1.2 works with a certificate");
}

/* ---- revocation lists ---- */

TEST(server, expired_revocation_list_is_reported)
{
    server_conf.client_ca = "ca.pem";
    server_conf.client_crl = "crl.pem";
    certificates_write_crl("crl.pem", &ca, NULL, 30);
    load();
    ck_assert_str_eq(tls_profile_warnings(server), "");
    tls_profile_release(server);
    tls_profile_release(client);
    certificates_write_crl("crl.pem", &ca, NULL, -1);
    load();
    ck_assert_str_eq(
        tls_profile_warnings(server),
        "client_crl: crl.pem: the revocation list of /CN=CA has expired: its certificates are refused\n");
}

TEST(server, refused_certificate_is_reported_by_name_and_number)
{
    static const char *own[] = {"client.pem"};
    struct certificate revoked;
    BIGNUM *serial;
    char *digits, expected[256], text[TLS_FAILURE_TEXT_BYTES];

    certificates_make(&revoked, &(struct certificate_wish){.name = "alice", .issuer = &ca});
    certificates_write("client.pem", "ck", &revoked, &revoked);
    certificates_write_crl("crl.pem", &ca, &revoked, 30);
    server_conf.client_ca = "ca.pem";
    server_conf.client_crl = "crl.pem";
    client_conf.certificates = (struct tls_paths){own, 1};
    load();
    ck_assert(!shake("a.example", TLS1_3_VERSION, NULL));
    serial = ASN1_INTEGER_to_BN(X509_get_serialNumber(revoked.x509), NULL);
    digits = BN_bn2hex(serial);
    snprintf(
        expected, sizeof(expected),
        "certificate revoked: certificate of 'alice', serial %s (alert sent: certificate revoked)",
        digits);
    ck_assert_str_eq(tls_failure_text(tls_stream_failure(stream), text, sizeof(text)), expected);
    OPENSSL_free(digits);
    BN_free(serial);
    certificates_free(&revoked);
}

TEST(server, a_server_whose_certificate_is_revoked_is_refused)
{
    client_conf.verify = TLS_VERIFY_REQUIRED;
    client_conf.ca = "ca.pem";
    client_conf.server_crl = "crl.pem";
    certificates_write_crl("crl.pem", &ca, NULL, 30);
    load();
    ck_assert(shake("a.example", TLS1_3_VERSION, NULL));
    tls_profile_release(server);
    tls_profile_release(client);
    certificates_write_crl("crl.pem", &ca, &leaf, 30);
    load();
    ck_assert(!shake("a.example", TLS1_3_VERSION, NULL));
    ck_assert_int_eq(SSL_get_verify_result(at_client), X509_V_ERR_CERT_REVOKED);
}
