/* tls/tls_profile: which files make a profile, what is said of others, and what peers see of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/ocsp.h>
#include <openssl/ssl.h>

#include "support/certificates.h"
#include "support/fault.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "tls/tls_profile.h"

static struct certificate ca, leaf;
static struct tls_profile *server, *client;
static SSL *at_server, *at_client;
static char why[512];

static struct tls_profile_conf server_conf = {.name = "s", .for_clients = true};
static struct tls_profile_conf client_conf = {.name = "c", .for_servers = true, .ca = "ca.pem"};

static void set_paths(struct tls_paths *paths, const char **list, unsigned n)
{
    paths->list = list;
    paths->n = n;
}

static void setup(void)
{
    static const char *certificates[] = {"a.pem"};

    text_file_enter();
    certificates_make(&ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificates_make(&leaf, &(struct certificate_wish){.name = "a.example",
                                                        .hosts = "DNS:a.example,IP:192.0.2.1",
                                                        .issuer = &ca});
    certificates_write("ca.pem", "c", &ca);
    certificates_write("a.pem", "ck", &leaf, &leaf);
    certificates[0] = "a.pem";
    set_paths(&server_conf.certificates, certificates, 1);
}

static void teardown(void)
{
    SSL_free(at_server);
    SSL_free(at_client);
    tls_profile_release(server);
    tls_profile_release(client);
    certificates_free(&leaf);
    certificates_free(&ca);
    text_file_leave();
}

static int load_server(void)
{
    tls_profile_release(server);
    server = NULL;
    return tls_profile_load(&server_conf, &server, why, sizeof(why));
}

static int load_client(void)
{
    tls_profile_release(client);
    client = NULL;
    return tls_profile_load(&client_conf, &client, why, sizeof(why));
}

static void load_both(void)
{
    ck_assert_msg(load_server() == 0, "%s", why);
    ck_assert_msg(load_client() == 0, "%s", why);
}

/* One side's bytes are the other's. */
static void connect_bios(void)
{
    BIO *a, *b;

    ck_assert_int_eq(BIO_new_bio_pair(&a, 0, &b, 0), 1);
    SSL_set_bio(at_server, a, a);
    SSL_set_bio(at_client, b, b);
}

/* Returns whether both sides finished. */
static bool shake(const char *tls_name)
{
    int c = 0, s = 0;

    SSL_free(at_server);
    SSL_free(at_client);
    at_server = tls_profile_new_server(server);
    at_client = tls_profile_new_client(client, tls_name);
    ck_assert(at_server && at_client);
    connect_bios();
    for (int i = 0; i < 20 && (c != 1 || s != 1); i++) {
        c = SSL_do_handshake(at_client);
        s = SSL_do_handshake(at_server);
    }
    return c == 1 && s == 1;
}

GROUP(shaking, setup, teardown);

TEST(shaking, a_client_verifies_the_certificate_for_the_name)
{
    load_both();
    ck_assert(shake("a.example"));
    ck_assert_str_eq(SSL_get_servername(at_server, TLSEXT_NAMETYPE_host_name), "a.example");
    ck_assert(!shake("b.example"));
    ck_assert_int_eq(SSL_get_verify_result(at_client), X509_V_ERR_HOSTNAME_MISMATCH);
}

TEST(shaking, an_address_is_verified_and_not_sent)
{
    load_both();
    ck_assert(shake("192.0.2.1"));
    ck_assert_ptr_null(SSL_get_servername(at_server, TLSEXT_NAMETYPE_host_name));
    ck_assert(!shake("192.0.2.2"));
}

TEST(shaking, a_profile_of_another_use_makes_no_connection)
{
    load_both();
    ck_assert_ptr_null(tls_profile_new_server(client));
    ck_assert_ptr_null(tls_profile_new_client(server, "a.example"));
    ck_assert_ptr_null(tls_profile_new_client(client, NULL));
}

TEST(shaking, connection_outlives_its_profile)
{
    load_both();
    SSL_free(at_server);
    at_server = tls_profile_new_server(server);
    tls_profile_release(server);
    server = NULL;
    at_client = tls_profile_new_client(client, "a.example");
    tls_profile_release(client);
    client = NULL;
    connect_bios();
    for (int i = 0; i < 20; i++) {
        SSL_do_handshake(at_client);
        SSL_do_handshake(at_server);
    }
    ck_assert(SSL_is_init_finished(at_server) && SSL_is_init_finished(at_client));
}

static void write_one(const char *path, const struct certificate_wish *wish)
{
    struct certificate c;

    certificates_make(&c, wish);
    certificates_write(path, "ck", &c, &c);
    certificates_free(&c);
}

/* The common name of the certificate that a client gets which asks for ${name}; "": none. */
static const char *shown_for(const char *name)
{
    static char cn[64];
    X509 *x;

    cn[0] = '\0';
    client_conf.verify = TLS_VERIFY_OFF;
    ck_assert_int_eq(load_client(), 0);
    if (!shake(name))
        return cn;
    x = SSL_get1_peer_certificate(at_client);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof(cn));
    X509_free(x);
    return cn;
}

static void load_names(void)
{
    static const char *paths[] = {"a.pem", "w.pem", "x.pem"};

    write_one("w.pem", &(struct certificate_wish){.name = "wild", .hosts = "DNS:*.B.example"});
    write_one("x.pem", &(struct certificate_wish){.name = "exact", .hosts = "DNS:x.b.example"});
    set_paths(&server_conf.certificates, paths, 3);
    ck_assert_msg(load_server() == 0, "%s", why);
}

TEST(shaking, exact_name_precedes_the_wildcard_and_unknown_names_get_the_first)
{
    load_names();
    ck_assert_str_eq(shown_for("x.b.example"), "exact");
    ck_assert_str_eq(shown_for("Y.b.Example"), "wild");
    ck_assert_str_eq(shown_for("a.example"), "a.example");
    ck_assert_str_eq(shown_for("z.y.b.example"), "a.example");
    ck_assert_str_eq(shown_for("b.example"), "a.example");
    ck_assert_str_eq(shown_for(NULL), "a.example");
}

TEST(shaking, an_unknown_name_may_be_rejected)
{
    server_conf.unknown_name = TLS_UNKNOWN_NAME_REJECT;
    load_names();
    ck_assert_str_eq(shown_for("x.b.example"), "exact");
    ck_assert_str_eq(shown_for("c.example"), "");
    ck_assert_str_eq(shown_for(NULL), "");
}

TEST(shaking, client_that_supports_ecdsa_gets_it_and_others_get_rsa)
{
    static const char *paths[] = {"rsa.pem", "ec.pem"};

    write_one("rsa.pem",
              &(struct certificate_wish){.name = "rsa", .hosts = "DNS:a.example", .is_rsa = true});
    write_one("ec.pem", &(struct certificate_wish){.name = "ec", .hosts = "DNS:a.example"});
    set_paths(&server_conf.certificates, paths, 2);
    ck_assert_int_eq(load_server(), 0);
    ck_assert_str_eq(shown_for("a.example"), "ec");
    ck_assert_str_eq(shown_for(NULL), "ec");
    client_conf.ciphers = "ECDHE-RSA-AES128-GCM-SHA256";
    ck_assert_int_eq(load_client(), 0);
    SSL_free(at_server);
    SSL_free(at_client);
    at_client = tls_profile_new_client(client, NULL);
    SSL_set_max_proto_version(at_client, TLS1_2_VERSION);
    at_server = tls_profile_new_server(server);
    connect_bios();
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(at_client);
        SSL_do_handshake(at_server);
    }
    ck_assert_str_eq(SSL_get_cipher_name(at_client), "ECDHE-RSA-AES128-GCM-SHA256");
    client_conf.ciphers = NULL;
}

TEST(shaking, common_protocol_is_chosen_in_the_order_of_the_server)
{
    static const unsigned char ours[] = "\2h2\1a", theirs[] = "\1a\2h2", other[] = "\1x";
    const unsigned char *chosen;
    unsigned n;

    server_conf.alpn = ours;
    server_conf.alpn_bytes = 5;
    client_conf.alpn = theirs;
    client_conf.alpn_bytes = 5;
    load_both();
    ck_assert(shake("a.example"));
    SSL_get0_alpn_selected(at_client, &chosen, &n);
    ck_assert(n == 2 && memcmp(chosen, "h2", 2) == 0);
    client_conf.alpn = other;
    client_conf.alpn_bytes = 2;
    ck_assert_int_eq(load_client(), 0);
    ck_assert(!shake("a.example"));
}

TEST(shaking, minimum_version_is_enforced)
{
    server_conf.min_version = TLS_VERSION_1_3;
    load_both();
    at_client = tls_profile_new_client(client, "a.example");
    at_server = tls_profile_new_server(server);
    SSL_set_max_proto_version(at_client, TLS1_2_VERSION);
    connect_bios();
    SSL_do_handshake(at_client);
    ck_assert_int_lt(SSL_do_handshake(at_server), 0);
    ck_assert_int_eq(SSL_get_error(at_server, -1), SSL_ERROR_SSL);
}

/* ---- clients' certificates ---- */

static void ask_clients(enum tls_verify verify)
{
    server_conf.client_ca = "ca.pem";
    server_conf.verify = verify;
    load_both();
}

static void have_client_certificate(const struct certificate *issuer)
{
    static const char *paths[] = {"client.pem"};

    write_one("client.pem", &(struct certificate_wish){.name = "client", .issuer = issuer});
    set_paths(&client_conf.certificates, paths, 1);
    ck_assert_msg(load_client() == 0, "%s", why);
}

/* In 1.3 a client has finished when the server refuses it. */
static bool server_accepts(void)
{
    shake("a.example");
    return SSL_is_init_finished(at_server);
}

TEST(shaking, clients_need_a_certificate_of_the_ca)
{
    ask_clients(TLS_VERIFY_REQUIRED);
    ck_assert(!server_accepts());
    have_client_certificate(&ca);
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
    server_conf.client_crl = "crl.pem";
    certificates_write_crl("crl.pem", &ca, NULL, 30);
    ask_clients(TLS_VERIFY_REQUIRED);
    have_client_certificate(&ca);
    ck_assert(server_accepts());
    certificates_write_crl("crl.pem", &ca, &leaf, 30);
    ck_assert_int_eq(load_server(), 0);
    certificates_write("client.pem", "ck", &leaf, &leaf);
    ck_assert_int_eq(load_client(), 0);
    ck_assert(!server_accepts());
}

static int load_without_memory(void *cookie)
{
    (void)cookie;
    return load_server();
}

GROUP(loading, setup, teardown);

TEST(loading, failed_allocation_changes_nothing)
{
    static const unsigned char alpn[] = "\2h2";

    server_conf.alpn = alpn;
    server_conf.alpn_bytes = 3;
    ck_assert_uint_gt(fault_each_allocation(load_without_memory, NULL), 2);
}

static void expect_refused(const char *text)
{
    ck_assert_int_eq(load_server(), -EINVAL);
    ck_assert_str_eq(why, text);
}

TEST(loading, invalid_certificates_are_reported_with_their_file)
{
    struct certificate other;

    certificates_make(&other, &(struct certificate_wish){.name = "o"});
    certificates_write("a.pem", "c", &leaf);
    expect_refused("certificate: a.pem: there is no private key (in it, in a.pem.key, or set key)");
    certificates_write("a.pem", "k", &leaf);
    expect_refused("certificate: a.pem: there is no certificate");
    certificates_write("a.pem", "ck", &leaf, &other);
    expect_refused(
        "certificate: a.pem: the key is not that of the certificate: key values mismatch");
    certificates_write("a.pem", "ckk", &leaf, &leaf, &leaf);
    expect_refused("certificate: a.pem: there are two keys (one)");
    certificates_write("a.pem", "ckc", &leaf, &leaf, &other);
    expect_refused("certificate: a.pem: certificate 2 is not of the chain (first the certificate "
                   "of the key, then its issuers)");
    text_file_write_text("a.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    ck_assert_int_eq(load_server(), -EINVAL);
    ck_assert_int_eq(strncmp(why, "certificate: a.pem: certificate 1 is broken: ", 45), 0);
    text_file_write_text("a.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
                                  "-----END ENCRYPTED PRIVATE KEY-----\n");
    expect_refused("certificate: a.pem: the key has a passphrase (remove it: openssl pkey)");
    certificates_free(&other);
}

TEST(loading, a_chain_in_another_order_is_sorted)
{
    struct certificate middle, end;

    certificates_make(&middle,
                      &(struct certificate_wish){.name = "middle", .is_ca = true, .issuer = &ca});
    certificates_make(&end, &(struct certificate_wish){.name = "a.example", .issuer = &middle});
    certificates_write("a.pem", "ckcc", &end, &end, &ca, &middle);
    ck_assert_msg(load_server() == 0, "%s", why);
    ck_assert_int_eq(load_client(), 0);
    ck_assert(shake("a.example"));
    ck_assert_int_eq(sk_X509_num(SSL_get_peer_cert_chain(at_client)), 3);
    certificates_free(&end);
    certificates_free(&middle);
}

TEST_EACH(loading, a_key_may_be_beside_its_certificate, 2)
{
    certificates_write("a.pem", "c", &leaf);
    certificates_write(_i == 0 ? "a.pem.key" : "a.key", "k", &leaf);
    ck_assert_msg(load_server() == 0, "%s", why);
}

TEST(loading, certificates_of_a_directory_are_loaded_by_name)
{
    static const char *paths[] = {"d"};

    ck_assert_int_eq(mkdir("d", 0700), 0);
    set_paths(&server_conf.certificates, paths, 1);
    text_file_write_text("d/README.txt", "no certificate");
    expect_refused("certificate: d: there is no certificate (files NAME.pem or NAME.crt)");
    write_one("d/b.crt", &(struct certificate_wish){.name = "b.example"});
    ck_assert_int_eq(mkdir("d/c", 0700), 0);
    ck_assert_int_eq(load_server(), 0);
    ck_assert_uint_eq(tls_profile_certificates(server), 1);
    certificates_write("d/c/fullchain.pem", "c", &leaf);
    certificates_write("d/c/privkey.pem", "k", &leaf);
    ck_assert_msg(load_server() == 0, "%s", why);
    ck_assert_uint_eq(tls_profile_certificates(server), 2);
    ck_assert_str_eq(shown_for("a.example"), "a.example");
    ck_assert_str_eq(shown_for(NULL), "b.example");
    ck_assert_int_eq(system("rm -r d"), 0);
}

TEST(loading, pair_that_comes_into_a_directory_later_is_noticed)
{
    static const char *paths[] = {"d"};
    uint64_t now;

    ck_assert_int_eq(mkdir("d", 0700), 0);
    ck_assert_int_eq(mkdir("d/c", 0700), 0);
    write_one("d/b.crt", &(struct certificate_wish){.name = "b.example"});
    set_paths(&server_conf.certificates, paths, 1);
    ck_assert_int_eq(load_server(), 0);
    ck_assert(!tls_profile_has_changed_files(server, &now));
    certificates_write("d/c/fullchain.pem", "c", &leaf);
    certificates_write("d/c/privkey.pem", "k", &leaf);
    ck_assert(tls_profile_has_changed_files(server, &now));
    ck_assert_int_eq(system("rm -r d"), 0);
}

TEST(loading, an_expired_certificate_replaces_no_other)
{
    struct tls_profile *before;

    write_one("old.pem", &(struct certificate_wish){.name = "old", .from_days = -9, .to_days = -1});
    server_conf.certificates.list[0] = "old.pem";
    ck_assert_int_eq(load_server(), 0);
    ck_assert_str_eq(tls_profile_warnings(server),
                     "certificate: old.pem: the certificate is expired or not yet valid\n");
    before = server;
    server = NULL;
    server_conf.before = before;
    ck_assert_int_eq(load_server(), 0);
    write_one("old.pem", &(struct certificate_wish){.name = "old", .from_days = -9, .to_days = -1});
    expect_refused("certificate: old.pem: the certificate is expired or not yet valid");
    tls_profile_release(before);
}

TEST(loading, profiles_are_equal_by_the_contents_of_their_files)
{
    struct tls_profile *before;

    ck_assert_int_eq(load_server(), 0);
    before = server;
    server = NULL;
    ck_assert_int_eq(load_server(), 0);
    ck_assert(tls_profile_same(before, server));
    server_conf.min_version = TLS_VERSION_1_3;
    ck_assert_int_eq(load_server(), 0);
    ck_assert(!tls_profile_same(before, server));
    server_conf.min_version = TLS_VERSION_1_2;
    certificates_write("a.pem", "ckc", &leaf, &leaf, &ca);
    ck_assert_int_eq(load_server(), 0);
    ck_assert(!tls_profile_same_files(before, server));
    tls_profile_release(before);
}

/* ---- tickets ---- */

GROUP(resuming, setup, teardown);

static const unsigned char raw_keys[2][48] = {"first name 16 byAES-128 key 16 bHMAC key 16 byte",
                                              "secondname 16 byAES-128 key 16 bHMAC key 16 byte"};

static void use_keys(const char *path)
{
    static const char *list[1];

    list[0] = path;
    set_paths(&server_conf.tickets, list, path != NULL);
    ck_assert_msg(load_server() == 0, "%s", why);
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

    at_client = tls_profile_new_client(client, "a.example");
    at_server = tls_profile_new_server(server);
    SSL_set_max_proto_version(at_client, version);
    SSL_CTX_set_session_cache_mode(SSL_get_SSL_CTX(at_client),
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(SSL_get_SSL_CTX(at_client), keep_session);
    if (session)
        SSL_set_session(at_client, session);
    connect_bios();
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(at_client);
        SSL_do_handshake(at_server);
        SSL_read(at_client, &byte, 1);
    }
    ck_assert(SSL_is_init_finished(at_server) && SSL_is_init_finished(at_client));
    version = SSL_session_reused(at_client);
    SSL_shutdown(at_client);
    SSL_shutdown(at_server);
    SSL_free(at_client);
    SSL_free(at_server);
    at_client = at_server = NULL;
    return version;
}

TEST_EACH(resuming, ticket_keys_of_files_are_valid_on_every_node, 2)
{
    int version = _i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;

    text_file_write("a.key48", raw_keys[0], 48);
    use_keys("a.key48");
    ck_assert_int_eq(load_client(), 0);
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
    ck_assert_int_eq(load_client(), 0);
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
    ck_assert_int_eq(load_client(), 0);
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
    ck_assert_int_eq(load_client(), 0);
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
    server_conf.client_ca = "ca.pem";
    server_conf.verify = TLS_VERIFY_OPTIONAL;
    ck_assert_int_eq(load_server(), 0);
    ck_assert_int_eq(load_client(), 0);
    ck_assert(!resume(TLS1_3_VERSION));
    ck_assert_int_eq(load_server(), 0);
    ck_assert(resume(TLS1_3_VERSION));
    certificates_make(&other, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificates_write("ca2.pem", "c", &other);
    certificates_free(&other);
    server_conf.client_ca = "ca2.pem";
    ck_assert_int_eq(load_server(), 0);
    ck_assert(!resume(TLS1_3_VERSION));
    SSL_SESSION_free(session);
}

TEST(resuming, invalid_ticket_keys_are_reported)
{
    static const char *list[] = {"bad"};

    set_paths(&server_conf.tickets, list, 1);
    text_file_write_text("bad", "");
    expect_refused("ticket_keys: bad: there is no key");
    text_file_write_text("bad", "\nabc\n");
    expect_refused("ticket_keys: bad:2: is no key (48 or 80 bytes in base64)");
}

/* ---- OCSP ---- */

GROUP(stapling, setup, teardown);

static void write_response(const struct certificate *of, int status, long until_s)
{
    OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
    OCSP_CERTID *id = OCSP_cert_to_id(NULL, of->x509, ca.x509);
    ASN1_TIME *since = X509_gmtime_adj(NULL, -9000), *until = X509_gmtime_adj(NULL, until_s);
    OCSP_RESPONSE *response;
    unsigned char *der = NULL;
    int n;

    ck_assert(basic && id && since && until);
    ck_assert_ptr_nonnull(OCSP_basic_add1_status(basic, id, status, 0, since, since, until));
    ck_assert_int_eq(OCSP_basic_sign(basic, ca.x509, ca.key, EVP_sha256(), NULL, 0), 1);
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

    ck_assert_int_eq(load_client(), 0);
    at_client = tls_profile_new_client(client, "a.example");
    at_server = tls_profile_new_server(server);
    SSL_set_tlsext_status_type(at_client, TLSEXT_STATUSTYPE_ocsp);
    connect_bios();
    for (int i = 0; i < 10; i++) {
        SSL_do_handshake(at_client);
        SSL_do_handshake(at_server);
    }
    ck_assert(SSL_is_init_finished(at_client));
    return SSL_get_tlsext_status_ocsp_resp(at_client, &der);
}

TEST(stapling, clients_get_the_ocsp_response_of_the_certificate)
{
    certificates_write("a.pem", "ckc", &leaf, &leaf, &ca);
    write_response(&leaf, V_OCSP_CERTSTATUS_GOOD, 9000);
    ck_assert_msg(load_server() == 0, "%s", why);
    ck_assert_int_gt(stapled(), 0);
}

TEST(stapling, expired_ocsp_response_is_not_sent)
{
    write_response(&leaf, V_OCSP_CERTSTATUS_GOOD, -1000);
    ck_assert_msg(load_server() == 0, "%s", why);
    ck_assert_str_eq(tls_profile_warnings(server),
                     "certificate: a.pem.ocsp: is out of date, and is not sent\n");
    ck_assert_int_eq(stapled(), -1);
}

TEST(stapling, ocsp_response_that_does_not_match_is_reported)
{
    static const char *list[] = {"a.pem.ocsp"};

    write_response(&leaf, V_OCSP_CERTSTATUS_REVOKED, 9000);
    expect_refused("certificate: a.pem.ocsp: says that a.pem is revoked or unknown");
    set_paths(&server_conf.ocsp, list, 1);
    server_conf.certificates.list[0] = "b.pem";
    certificates_write("b.pem", "ck", &leaf, &leaf);
    write_response(&ca, V_OCSP_CERTSTATUS_GOOD, 9000);
    expect_refused("ocsp_file: a.pem.ocsp: is for no certificate of this section");
    text_file_write_text("a.pem.ocsp", "x");
    expect_refused("ocsp_file: a.pem.ocsp: is no response of OCSP (DER)");
}

TEST(loading, replaced_file_is_noticed)
{
    uint64_t before, after;

    ck_assert_int_eq(load_server(), 0);
    ck_assert(!tls_profile_has_changed_files(server, &before));
    ck_assert(!tls_profile_has_changed_files(server, &after));
    ck_assert_uint_eq(before, after);
    ck_assert_int_eq(rename("ca.pem", "other"), 0);
    ck_assert(!tls_profile_has_changed_files(server, &after));
    certificates_write("new.pem", "ck", &leaf, &leaf);
    ck_assert_int_eq(rename("new.pem", "a.pem"), 0);
    ck_assert(tls_profile_has_changed_files(server, &after));
    ck_assert_uint_ne(before, after);
    ck_assert_int_eq(load_server(), 0);
    text_file_write_text("a.pem.ocsp", "may come later");
    ck_assert(tls_profile_has_changed_files(server, &after));
}
