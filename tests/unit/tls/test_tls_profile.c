/* tls/tls_profile: what peers see of it: certificates, names, versions and protocols. */
#include <openssl/ocsp.h>
#include <openssl/ssl.h>
#include <string.h>

#include "support/certificates.h"
#include "support/profiles.h"
#include "support/suite.h"
#include "tls/tls_profile.h"

static void load_both(void)
{
    ck_assert_msg(profiles_load_server() == 0, "%s", profiles.why);
    ck_assert_msg(profiles_load_client() == 0, "%s", profiles.why);
}

GROUP(shaking, profiles_setup, profiles_teardown);

TEST(shaking, a_client_verifies_the_certificate_for_the_name)
{
    load_both();
    ck_assert(profiles_shake("a.example"));
    ck_assert_str_eq(SSL_get_servername(profiles.at_server, TLSEXT_NAMETYPE_host_name),
                     "a.example");
    ck_assert(!profiles_shake("b.example"));
    ck_assert_int_eq(SSL_get_verify_result(profiles.at_client), X509_V_ERR_HOSTNAME_MISMATCH);
}

TEST(shaking, an_address_is_verified_and_not_sent)
{
    load_both();
    ck_assert(profiles_shake("192.0.2.1"));
    ck_assert_ptr_null(SSL_get_servername(profiles.at_server, TLSEXT_NAMETYPE_host_name));
    ck_assert(!profiles_shake("192.0.2.2"));
}

TEST(shaking, a_profile_of_another_use_makes_no_connection)
{
    load_both();
    ck_assert_ptr_null(tls_profile_new_server(profiles.client));
    ck_assert_ptr_null(tls_profile_new_client(profiles.server, "a.example", CLIENT_HELLO_NONE));
    ck_assert_ptr_null(tls_profile_new_client(profiles.client, NULL, CLIENT_HELLO_NONE));
}

TEST(shaking, connection_outlives_its_profile)
{
    load_both();
    SSL_free(profiles.at_server);
    profiles.at_server = tls_profile_new_server(profiles.server);
    tls_profile_release(profiles.server);
    profiles.server = NULL;
    profiles.at_client = tls_profile_new_client(profiles.client, "a.example", CLIENT_HELLO_NONE);
    tls_profile_release(profiles.client);
    profiles.client = NULL;
    profiles_connect_bios();
    for (int i = 0; i < 20; i++) {
        SSL_do_handshake(profiles.at_client);
        SSL_do_handshake(profiles.at_server);
    }
    ck_assert(SSL_is_init_finished(profiles.at_server) && SSL_is_init_finished(profiles.at_client));
}

static void load_names(void)
{
    static const char *paths[] = {"a.pem", "w.pem", "x.pem"};

    profiles_write_one("w.pem",
                       &(struct certificate_wish){.name = "wild", .hosts = "DNS:*.B.example"});
    profiles_write_one("x.pem",
                       &(struct certificate_wish){.name = "exact", .hosts = "DNS:x.b.example"});
    profiles_set_paths(&profiles.server_conf.certificates, paths, 3);
    ck_assert_msg(profiles_load_server() == 0, "%s", profiles.why);
}

TEST(shaking, exact_name_precedes_the_wildcard_and_unknown_names_get_the_first)
{
    load_names();
    ck_assert_str_eq(profiles_shown_for("x.b.example"), "exact");
    ck_assert_str_eq(profiles_shown_for("Y.b.Example"), "wild");
    ck_assert_str_eq(profiles_shown_for("a.example"), "a.example");
    ck_assert_str_eq(profiles_shown_for("z.y.b.example"), "a.example");
    ck_assert_str_eq(profiles_shown_for("b.example"), "a.example");
    ck_assert_str_eq(profiles_shown_for(NULL), "a.example");
}

TEST(shaking, an_unknown_name_may_be_rejected)
{
    profiles.server_conf.unknown_name = TLS_UNKNOWN_NAME_REJECT;
    load_names();
    ck_assert_str_eq(profiles_shown_for("x.b.example"), "exact");
    ck_assert_str_eq(profiles_shown_for("c.example"), "");
    ck_assert_str_eq(profiles_shown_for(NULL), "");
}

TEST(shaking, client_that_supports_ecdsa_gets_it_and_others_get_rsa)
{
    static const char *paths[] = {"rsa.pem", "ec.pem"};

    profiles_write_one("rsa.pem", &(struct certificate_wish){
                                      .name = "rsa", .hosts = "DNS:a.example", .is_rsa = true});
    profiles_write_one("ec.pem",
                       &(struct certificate_wish){.name = "ec", .hosts = "DNS:a.example"});
    profiles_set_paths(&profiles.server_conf.certificates, paths, 2);
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert_str_eq(profiles_shown_for("a.example"), "ec");
    ck_assert_str_eq(profiles_shown_for(NULL), "ec");
    profiles.client_conf.ciphers = "ECDHE-RSA-AES128-GCM-SHA256";
    ck_assert_int_eq(profiles_load_client(), 0);
    SSL_free(profiles.at_server);
    SSL_free(profiles.at_client);
    profiles.at_client = tls_profile_new_client(profiles.client, NULL, CLIENT_HELLO_NONE);
    SSL_set_max_proto_version(profiles.at_client, TLS1_2_VERSION);
    profiles.at_server = tls_profile_new_server(profiles.server);
    profiles_connect_bios();
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(profiles.at_client);
        SSL_do_handshake(profiles.at_server);
    }
    ck_assert_str_eq(SSL_get_cipher_name(profiles.at_client), "ECDHE-RSA-AES128-GCM-SHA256");
    profiles.client_conf.ciphers = NULL;
}

TEST(shaking, common_protocol_is_chosen_in_the_order_of_the_server)
{
    static const unsigned char ours[] = "\2h2\1a", theirs[] = "\1a\2h2", other[] = "\1x";
    const unsigned char *chosen;
    unsigned n;

    profiles.server_conf.alpn = ours;
    profiles.server_conf.alpn_bytes = 5;
    profiles.client_conf.alpn = theirs;
    profiles.client_conf.alpn_bytes = 5;
    load_both();
    ck_assert(profiles_shake("a.example"));
    SSL_get0_alpn_selected(profiles.at_client, &chosen, &n);
    ck_assert(n == 2 && memcmp(chosen, "h2", 2) == 0);
    profiles.client_conf.alpn = other;
    profiles.client_conf.alpn_bytes = 2;
    ck_assert_int_eq(profiles_load_client(), 0);
    ck_assert(!profiles_shake("a.example"));
}

static void expect_agreed(struct client_hello_bytes with_client, const char *protocol)
{
    const unsigned char *chosen;
    unsigned n;

    SSL_free(profiles.at_server);
    SSL_free(profiles.at_client);
    profiles.at_client = tls_profile_new_client(profiles.client, "a.example", with_client);
    profiles.at_server = tls_profile_new_server(profiles.server);
    profiles_connect_bios();
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(profiles.at_client);
        SSL_do_handshake(profiles.at_server);
    }
    ck_assert(SSL_is_init_finished(profiles.at_client));
    SSL_get0_alpn_selected(profiles.at_server, &chosen, &n);
    ck_assert(n == strlen(protocol) && (n == 0 || memcmp(chosen, protocol, n) == 0));
}

TEST(shaking, servers_are_offered_the_protocol_agreed_with_the_client)
{
    static const unsigned char list[] = "\2h2\1a";
    static const uint8_t long_one[256] = {0};
    const struct client_hello_bytes a = {list + 4, 1};

    profiles.server_conf.alpn = list;
    profiles.server_conf.alpn_bytes = 5;
    profiles.client_conf.alpn_of_client = true;
    load_both();
    expect_agreed(a, "a");
    expect_agreed((struct client_hello_bytes){list + 1, 2}, "h2");
    expect_agreed(CLIENT_HELLO_NONE, "");
    expect_agreed((struct client_hello_bytes){long_one, sizeof(long_one)}, "");
    profiles.client_conf.alpn_of_client = false;
    ck_assert_int_eq(profiles_load_client(), 0);
    expect_agreed(a, "");
}

TEST(shaking, minimum_version_is_enforced)
{
    profiles.server_conf.min_version = TLS_VERSION_1_3;
    load_both();
    profiles.at_client = tls_profile_new_client(profiles.client, "a.example", CLIENT_HELLO_NONE);
    profiles.at_server = tls_profile_new_server(profiles.server);
    SSL_set_max_proto_version(profiles.at_client, TLS1_2_VERSION);
    profiles_connect_bios();
    SSL_do_handshake(profiles.at_client);
    ck_assert_int_lt(SSL_do_handshake(profiles.at_server), 0);
    ck_assert_int_eq(SSL_get_error(profiles.at_server, -1), SSL_ERROR_SSL);
}

/* ---- clients' certificates ---- */

static void ask_clients(enum tls_verify verify)
{
    profiles.server_conf.client_ca = "ca.pem";
    profiles.server_conf.verify = verify;
    load_both();
}

static void have_client_certificate(const struct certificate *issuer)
{
    static const char *paths[] = {"client.pem"};

    profiles_write_one("client.pem",
                       &(struct certificate_wish){.name = "client", .issuer = issuer});
    profiles_set_paths(&profiles.client_conf.certificates, paths, 1);
    ck_assert_msg(profiles_load_client() == 0, "%s", profiles.why);
}

/* In 1.3 a client has finished when the server refuses it. */
static bool server_accepts(void)
{
    profiles_shake("a.example");
    return SSL_is_init_finished(profiles.at_server);
}

TEST(shaking, clients_need_a_certificate_of_the_ca)
{
    ask_clients(TLS_VERIFY_REQUIRED);
    ck_assert(!server_accepts());
    have_client_certificate(&profiles.ca);
    ck_assert(server_accepts());
    have_client_certificate(NULL);
    ck_assert(!server_accepts());
}

TEST(shaking, client_certificate_may_be_missing_but_not_from_another_ca)
{
    ask_clients(TLS_VERIFY_OPTIONAL);
    ck_assert(server_accepts());
    have_client_certificate(NULL);
    ck_assert(!server_accepts());
}

TEST(shaking, a_revoked_client_is_refused)
{
    profiles.server_conf.client_crl = "crl.pem";
    certificates_write_crl("crl.pem", &profiles.ca, NULL, 30);
    ask_clients(TLS_VERIFY_REQUIRED);
    have_client_certificate(&profiles.ca);
    ck_assert(server_accepts());
    certificates_write_crl("crl.pem", &profiles.ca, &profiles.leaf, 30);
    ck_assert_int_eq(profiles_load_server(), 0);
    certificates_write("client.pem", "ck", &profiles.leaf, &profiles.leaf);
    ck_assert_int_eq(profiles_load_client(), 0);
    ck_assert(!server_accepts());
}
