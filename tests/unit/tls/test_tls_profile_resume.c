/* tls/tls_profile: sessions that are resumed, and OCSP responses. */
#include <openssl/ocsp.h>
#include <openssl/ssl.h>

#include "support/certificates.h"
#include "support/profiles.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "tls/tls_profile.h"

/* ---- tickets ---- */

GROUP(resuming, profiles_setup, profiles_teardown);

static const unsigned char raw_keys[2][48] = {"first name 16 byAES-128 key 16 bHMAC key 16 byte",
                                              "secondname 16 byAES-128 key 16 bHMAC key 16 byte"};

static void use_keys(const char *path)
{
    static const char *list[1];

    list[0] = path;
    profiles_set_paths(&profiles.server_conf.tickets, list, path != NULL);
    ck_assert_msg(profiles_load_server() == 0, "%s", profiles.why);
}

static SSL_SESSION *session;

static int keep_session(SSL *ssl, SSL_SESSION *s)
{
    (void)ssl;
    SSL_SESSION_free(session);
    session = s;
    return 1;
}

/* Connects, with the last session if there is one; returns whether it was resumed. */
static bool resume(int version)
{
    char byte;

    profiles.at_client = tls_profile_new_client(profiles.client, "a.example", CLIENT_HELLO_NONE);
    profiles.at_server = tls_profile_new_server(profiles.server);
    SSL_set_max_proto_version(profiles.at_client, version);
    SSL_CTX_set_session_cache_mode(SSL_get_SSL_CTX(profiles.at_client),
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(SSL_get_SSL_CTX(profiles.at_client), keep_session);
    if (session)
        SSL_set_session(profiles.at_client, session);
    profiles_connect_bios();
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(profiles.at_client);
        SSL_do_handshake(profiles.at_server);
        SSL_read(profiles.at_client, &byte, 1);
    }
    ck_assert(SSL_is_init_finished(profiles.at_server) && SSL_is_init_finished(profiles.at_client));
    version = SSL_session_reused(profiles.at_client);
    SSL_shutdown(profiles.at_client);
    SSL_shutdown(profiles.at_server);
    SSL_free(profiles.at_client);
    SSL_free(profiles.at_server);
    profiles.at_client = profiles.at_server = NULL;
    return version;
}

TEST_EACH(resuming, ticket_keys_of_files_are_valid_on_every_node, 2)
{
    int version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;

    text_file_write("a.key48", raw_keys[0], 48);
    use_keys("a.key48");
    ck_assert_int_eq(profiles_load_client(), 0);
    ck_assert(!resume(version));
    use_keys("a.key48"); /* as another process would */
    ck_assert(resume(version));
    text_file_write("b.key48", raw_keys[1], 48);
    use_keys("b.key48");
    ck_assert(!resume(version));
    SSL_SESSION_free(session);
}

TEST(resuming, first_ticket_key_encrypts_and_all_decrypt)
{
    char text[160];
    int n = EVP_EncodeBlock((unsigned char *)text, raw_keys[1], 48);

    text[n++] = '\n';
    n += EVP_EncodeBlock((unsigned char *)text + n, raw_keys[0], 48);
    text_file_write("a.key48", raw_keys[0], 48);
    text_file_write("both", text, (size_t)n);
    use_keys("a.key48");
    ck_assert_int_eq(profiles_load_client(), 0);
    ck_assert(!resume(TLS1_2_VERSION));
    use_keys("both");
    ck_assert(resume(TLS1_2_VERSION));
    use_keys("a.key48"); /* the ticket was renewed, by the new first key */
    ck_assert(!resume(TLS1_2_VERSION));
    SSL_SESSION_free(session);
}

TEST(resuming, keys_of_the_process_are_shared_by_profiles)
{
    use_keys(NULL);
    ck_assert_int_eq(profiles_load_client(), 0);
    ck_assert(!resume(TLS1_3_VERSION));
    use_keys(NULL);
    ck_assert(resume(TLS1_3_VERSION));
    SSL_SESSION_free(session);
}

/* A client of 1.3 uses a ticket once (RFC 8446, C.4), one of 1.2 again and again. */
TEST_EACH(resuming, ticket_is_replaced_at_each_resumption_in_tls_1_3_only, 2)
{
    int version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    SSL_SESSION *used;

    use_keys(NULL);
    ck_assert_int_eq(profiles_load_client(), 0);
    ck_assert(!resume(version));
    for (int i = 0; i < 3; i++) {
        used = session;
        SSL_SESSION_up_ref(used); /* or the new one may be in its place */
        ck_assert(resume(version));
        ck_assert_int_eq(session != used, version == TLS1_3_VERSION);
        SSL_SESSION_free(used);
    }
    SSL_SESSION_free(session);
}

TEST(resuming, ticket_does_not_bypass_another_ca)
{
    struct certificate other;

    use_keys(NULL);
    profiles.server_conf.client_ca = "ca.pem";
    profiles.server_conf.verify = TLS_VERIFY_OPTIONAL;
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert_int_eq(profiles_load_client(), 0);
    ck_assert(!resume(TLS1_3_VERSION));
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert(resume(TLS1_3_VERSION));
    certificates_make(&other, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificates_write("ca2.pem", "c", &other);
    certificates_free(&other);
    profiles.server_conf.client_ca = "ca2.pem";
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert(!resume(TLS1_3_VERSION));
    SSL_SESSION_free(session);
}

TEST(resuming, invalid_ticket_keys_are_reported)
{
    static const char *list[] = {"bad"};

    profiles_set_paths(&profiles.server_conf.tickets, list, 1);
    text_file_write_text("bad", "");
    profiles_expect_refused("ticket_keys: bad: there is no key");
    text_file_write_text("bad", "\nabc\n");
    profiles_expect_refused("ticket_keys: bad:2: is no key (48 or 80 bytes in base64)");
}

/* ---- OCSP ---- */

GROUP(stapling, profiles_setup, profiles_teardown);

static void write_response(const struct certificate *of, int status, long until_s)
{
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(NULL, of->x509, profiles.ca.x509);
    ASN1_TIME *since = X509_gmtime_adj(NULL, -9000), *until = X509_gmtime_adj(NULL, until_s);
    OCSP_RESPONSE *response;
    unsigned char *der = NULL;
    int n;

    ck_assert(basic && id && since && until);
    ck_assert_ptr_nonnull(OCSP_basic_add1_status(basic, id, status, 0, since, since, until));
    ck_assert_int_eq(
        OCSP_basic_sign(basic, profiles.ca.x509, profiles.ca.key, EVP_sha256(), NULL, 0), 1);
    response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
    n = i2d_OCSP_RESPONSE(response, &der);
    ck_assert_int_gt(n, 0);
    text_file_write("a.pem.ocsp", der, (size_t)n);
    OPENSSL_free(der);
    OCSP_RESPONSE_free(response);
    OCSP_BASICRESP_free(basic);
    OCSP_CERTID_free(id);
    ASN1_TIME_free(since);
    ASN1_TIME_free(until);
}

/* Bytes of the response that a client got which asked for one. */
static long stapled(void)
{
    const unsigned char *der;

    ck_assert_int_eq(profiles_load_client(), 0);
    profiles.at_client = tls_profile_new_client(profiles.client, "a.example", CLIENT_HELLO_NONE);
    profiles.at_server = tls_profile_new_server(profiles.server);
    SSL_set_tlsext_status_type(profiles.at_client, TLSEXT_STATUSTYPE_ocsp);
    profiles_connect_bios();
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(profiles.at_client);
        SSL_do_handshake(profiles.at_server);
    }
    ck_assert(SSL_is_init_finished(profiles.at_client));
    return SSL_get_tlsext_status_ocsp_resp(profiles.at_client, &der);
}

TEST(stapling, clients_get_the_ocsp_response_of_the_certificate)
{
    certificates_write("a.pem", "ckc", &profiles.leaf, &profiles.leaf, &profiles.ca);
    write_response(&profiles.leaf, V_OCSP_CERTSTATUS_GOOD, 9000);
    ck_assert_msg(profiles_load_server() == 0, "%s", profiles.why);
    ck_assert_int_gt(stapled(), 0);
}

TEST(stapling, expired_ocsp_response_is_not_sent)
{
    write_response(&profiles.leaf, V_OCSP_CERTSTATUS_GOOD, -1000);
    ck_assert_msg(profiles_load_server() == 0, "%s", profiles.why);
    ck_assert_str_eq(tls_profile_warnings(profiles.server),
                     "certificate: a.pem.ocsp: is out of date, and is not sent\n");
    ck_assert_int_eq(stapled(), -1);
}

TEST(stapling, ocsp_response_that_does_not_match_is_reported)
{
    static const char *list[] = {"a.pem.ocsp"};

    write_response(&profiles.leaf, V_OCSP_CERTSTATUS_REVOKED, 9000);
    profiles_expect_refused("certificate: a.pem.ocsp: says that a.pem is revoked or unknown");
    profiles_set_paths(&profiles.server_conf.ocsp, list, 1);
    profiles.server_conf.certificates.list[0] = "b.pem";
    certificates_write("b.pem", "ck", &profiles.leaf, &profiles.leaf);
    write_response(&profiles.ca, V_OCSP_CERTSTATUS_GOOD, 9000);
    profiles_expect_refused("ocsp_file: a.pem.ocsp: is for no certificate of this section");
    text_file_write_text("a.pem.ocsp", "x");
    profiles_expect_refused("ocsp_file: a.pem.ocsp: is no response of OCSP (DER)");
}
