#include "support/profiles.h"

#include <check.h>
#include <errno.h>
#include <openssl/ocsp.h>
#include <openssl/ssl.h>

#include "support/certificates.h"
#include "support/text_file.h"
#include "tls/tls_profile.h"

struct profiles profiles = {.server_conf = {.name = "s", .for_clients = true},
                            .client_conf = {.name = "c", .for_servers = true, .ca = "ca.pem"}};

void profiles_set_paths(struct tls_paths *paths, const char **list, unsigned n)
{
    paths->list = list;
    paths->n = n;
}

void profiles_setup(void)
{
    static const char *certificates[] = {"a.pem"};

    text_file_enter();
    certificates_make(&profiles.ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificates_make(&profiles.leaf,
                      &(struct certificate_wish){.name = "a.example",
                                                 .hosts = "DNS:a.example,IP:192.0.2.1",
                                                 .issuer = &profiles.ca});
    certificates_write("ca.pem", "c", &profiles.ca);
    certificates_write("a.pem", "ck", &profiles.leaf, &profiles.leaf);
    certificates[0] = "a.pem";
    profiles_set_paths(&profiles.server_conf.certificates, certificates, 1);
}

void profiles_teardown(void)
{
    SSL_free(profiles.at_server);
    SSL_free(profiles.at_client);
    tls_profile_release(profiles.server);
    tls_profile_release(profiles.client);
    certificates_free(&profiles.leaf);
    certificates_free(&profiles.ca);
    text_file_leave();
}

int profiles_load_server(void)
{
    tls_profile_release(profiles.server);
    profiles.server = NULL;
    return tls_profile_load(&profiles.server_conf, &profiles.server, profiles.why,
                            sizeof(profiles.why));
}

int profiles_load_client(void)
{
    tls_profile_release(profiles.client);
    profiles.client = NULL;
    return tls_profile_load(&profiles.client_conf, &profiles.client, profiles.why,
                            sizeof(profiles.why));
}

void profiles_connect_bios(void)
{
    BIO *a, *b;

    ck_assert_int_eq(BIO_new_bio_pair(&a, 0, &b, 0), 1);
    SSL_set_bio(profiles.at_server, a, a);
    SSL_set_bio(profiles.at_client, b, b);
}

bool profiles_shake(const char *tls_name)
{
    int c = 0, s = 0;

    SSL_free(profiles.at_server);
    SSL_free(profiles.at_client);
    profiles.at_server = tls_profile_new_server(profiles.server);
    profiles.at_client = tls_profile_new_client(profiles.client, tls_name, CLIENT_HELLO_NONE);
    ck_assert(profiles.at_server && profiles.at_client);
    profiles_connect_bios();
    for (int i = 0; i < 20 && (c != 1 || s != 1); i++) {
        c = SSL_do_handshake(profiles.at_client);
        s = SSL_do_handshake(profiles.at_server);
    }
    return c == 1 && s == 1;
}

void profiles_write_one(const char *path, const struct certificate_wish *wish)
{
    struct certificate c;

    certificates_make(&c, wish);
    certificates_write(path, "ck", &c, &c);
    certificates_free(&c);
}

const char *profiles_shown_for(const char *name)
{
    static char cn[64];
    X509 *x;

    cn[0] = '\0';
    profiles.client_conf.verify = TLS_VERIFY_OFF;
    ck_assert_int_eq(profiles_load_client(), 0);
    if (!profiles_shake(name))
        return cn;
    x = SSL_get1_peer_certificate(profiles.at_client);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof(cn));
    X509_free(x);
    return cn;
}

void profiles_expect_refused(const char *text)
{
    ck_assert_int_eq(profiles_load_server(), -EINVAL);
    ck_assert_str_eq(profiles.why, text);
}
