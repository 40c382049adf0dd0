/* tls/tls_profile: which files make a profile, and what is said of others. */
#include <errno.h>
#include <openssl/ocsp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/certificates.h"
#include "support/fault.h"
#include "support/profiles.h"
#include "support/suite.h"
#include "support/text_file.h"
#include "tls/tls_profile.h"

static int load_without_memory(void *cookie)
{
    (void)cookie;
    return profiles_load_server();
}

GROUP(loading, profiles_setup, profiles_teardown);

TEST(loading, failed_allocation_changes_nothing)
{
    static const unsigned char alpn[] = "\2h2";

    profiles.server_conf.alpn = alpn;
    profiles.server_conf.alpn_bytes = 3;
    ck_assert_uint_gt(fault_each_allocation(load_without_memory, NULL), 2);
}

TEST(loading, invalid_certificates_are_reported_with_their_file)
{
    struct certificate other;

    certificates_make(&other, &(struct certificate_wish){.name = "o"});
    certificates_write("a.pem", "c", &profiles.leaf);
    profiles_expect_refused(
        "certificate: a.pem: there is no private key (in it, in a.pem.key, or set key)");
    certificates_write("a.pem", "k", &profiles.leaf);
    profiles_expect_refused("certificate: a.pem: there is no certificate");
    certificates_write("a.pem", "ck", &profiles.leaf, &other);
    profiles_expect_refused(
        "certificate: a.pem: the key is not that of the certificate: key values mismatch");
    certificates_write("a.pem", "ckk", &profiles.leaf, &profiles.leaf, &profiles.leaf);
    profiles_expect_refused("certificate: a.pem: there are two keys (one)");
    certificates_write("a.pem", "ckc", &profiles.leaf, &profiles.leaf, &other);
    profiles_expect_refused(
        "certificate: a.pem: certificate 2 is not of the chain (first the certificate "
        "of the key, then its issuers)");
    text_file_write_text("a.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    ck_assert_int_eq(profiles_load_server(), -EINVAL);
    ck_assert_int_eq(strncmp(profiles.why, "certificate: a.pem: certificate 1 is broken: ", 45), 0);
    text_file_write_text("a.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
                                  "-----END ENCRYPTED PRIVATE KEY-----\n");
    profiles_expect_refused(
        "certificate: a.pem: the key has a passphrase (remove it: openssl pkey)");
    certificates_free(&other);
}

TEST(loading, a_chain_in_another_order_is_sorted)
{
    struct certificate middle, end;

    certificates_make(&middle, &(struct certificate_wish){
                                   .name = "middle", .is_ca = true, .issuer = &profiles.ca});
    certificates_make(&end, &(struct certificate_wish){.name = "a.example", .issuer = &middle});
    certificates_write("a.pem", "ckcc", &end, &end, &profiles.ca, &middle);
    ck_assert_msg(profiles_load_server() == 0, "%s", profiles.why);
    ck_assert_int_eq(profiles_load_client(), 0);
    ck_assert(profiles_shake("a.example"));
    ck_assert_int_eq(sk_X509_num(SSL_get_peer_cert_chain(profiles.at_client)), 3);
    certificates_free(&end);
    certificates_free(&middle);
}

TEST_EACH(loading, a_key_may_be_beside_its_certificate, 2)
{
    certificates_write("a.pem", "c", &profiles.leaf);
    certificates_write(_i == 0 ? "a.pem.key" : "a.key", "k", &profiles.leaf);
    ck_assert_msg(profiles_load_server() == 0, "%s", profiles.why);
}

TEST(loading, certificates_of_a_directory_are_loaded_by_name)
{
    static const char *paths[] = {"d"};

    ck_assert_int_eq(mkdir("d", 0700), 0);
    profiles_set_paths(&profiles.server_conf.certificates, paths, 1);
    text_file_write_text("d/README.txt", "no certificate");
    profiles_expect_refused("certificate: d: there is no certificate (files NAME.pem or NAME.crt)");
    profiles_write_one("d/b.crt", &(struct certificate_wish){.name = "b.example"});
    ck_assert_int_eq(mkdir("d/c", 0700), 0);
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert_uint_eq(tls_profile_certificates(profiles.server), 1);
    certificates_write("d/c/fullchain.pem", "c", &profiles.leaf);
    certificates_write("d/c/privkey.pem", "k", &profiles.leaf);
    ck_assert_msg(profiles_load_server() == 0, "%s", profiles.why);
    ck_assert_uint_eq(tls_profile_certificates(profiles.server), 2);
    ck_assert_str_eq(profiles_shown_for("a.example"), "a.example");
    ck_assert_str_eq(profiles_shown_for(NULL), "b.example");
    ck_assert_int_eq(system("rm -r d"), 0);
}

TEST(loading, pair_that_comes_into_a_directory_later_is_noticed)
{
    static const char *paths[] = {"d"};
    uint64_t now;

    ck_assert_int_eq(mkdir("d", 0700), 0);
    ck_assert_int_eq(mkdir("d/c", 0700), 0);
    profiles_write_one("d/b.crt", &(struct certificate_wish){.name = "b.example"});
    profiles_set_paths(&profiles.server_conf.certificates, paths, 1);
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert(!tls_profile_has_changed_files(profiles.server, &now));
    certificates_write("d/c/fullchain.pem", "c", &profiles.leaf);
    certificates_write("d/c/privkey.pem", "k", &profiles.leaf);
    ck_assert(tls_profile_has_changed_files(profiles.server, &now));
    ck_assert_int_eq(system("rm -r d"), 0);
}

TEST(loading, an_expired_certificate_replaces_no_other)
{
    struct tls_profile *before;

    profiles_write_one("old.pem",
                       &(struct certificate_wish){.name = "old", .from_days = -9, .to_days = -1});
    profiles.server_conf.certificates.list[0] = "old.pem";
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert_str_eq(tls_profile_warnings(profiles.server),
                     "certificate: old.pem: the certificate is expired or not yet valid\n");
    before = profiles.server;
    profiles.server = NULL;
    profiles.server_conf.before = before;
    ck_assert_int_eq(profiles_load_server(), 0);
    profiles_write_one("old.pem",
                       &(struct certificate_wish){.name = "old", .from_days = -9, .to_days = -1});
    profiles_expect_refused("certificate: old.pem: the certificate is expired or not yet valid");
    tls_profile_release(before);
}

TEST(loading, profiles_are_equal_by_the_contents_of_their_files)
{
    struct tls_profile *before;

    ck_assert_int_eq(profiles_load_server(), 0);
    before = profiles.server;
    profiles.server = NULL;
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert(tls_profile_same(before, profiles.server));
    profiles.server_conf.min_version = TLS_VERSION_1_3;
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert(!tls_profile_same(before, profiles.server));
    profiles.server_conf.min_version = TLS_VERSION_1_2;
    certificates_write("a.pem", "ckc", &profiles.leaf, &profiles.leaf, &profiles.ca);
    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert(!tls_profile_same_files(before, profiles.server));
    tls_profile_release(before);
}

TEST(loading, replaced_file_is_noticed)
{
    uint64_t before, after;

    ck_assert_int_eq(profiles_load_server(), 0);
    ck_assert(!tls_profile_has_changed_files(profiles.server, &before));
    ck_assert(!tls_profile_has_changed_files(profiles.server, &after));
    ck_assert_uint_eq(before, after);
    ck_assert_int_eq(rename("ca.pem", "other"), 0);
    ck_assert(!tls_profile_has_changed_files(profiles.server, &after));
    certificates_write("new.pem", "ck", &profiles.leaf, &profiles.leaf);
    ck_assert_int_eq(rename("new.pem", "a.pem"), 0);
    ck_assert(tls_profile_has_changed_files(profiles.server, &after));
    ck_assert_uint_ne(before, after);
    ck_assert_int_eq(profiles_load_server(), 0);
    text_file_write_text("a.pem.ocsp", "may come later");
    ck_assert(tls_profile_has_changed_files(profiles.server, &after));
}
