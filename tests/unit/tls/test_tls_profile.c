/* tls/tls_profile: which files make a profile, what is said of others, and what peers see of it. */
#include <errno.h>
#include <string.h>

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

TEST(shaking, a_connection_lives_on_without_its_profile)
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

static int load_without_memory(void *cookie)
{
    (void)cookie;
    return load_server();
}

GROUP(loading, setup, teardown);

TEST(loading, no_memory_changes_nothing)
{
    static const unsigned char alpn[] = "\2h2";

    server_conf.alpn = alpn;
    server_conf.alpn_bytes = 3;
    ck_assert_uint_gt(fault_each_allocation(load_without_memory, NULL), 2);
}
