/*
 * Fuzz the files of a [tls NAME] section: any file is refused with a printable reason or taken, and
 * what is taken is taken again, with the same content.
 *
 * The first byte says what the rest is: certificates and a key, an OCSP response, ticket keys, a
 * CA, the ticket keys that a process hands over, or the certificate of a peer.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include "base/must.h"
#include "base/text.h"
#include "tls/tls_common_name.h"
#include "tls/tls_profile.h"
#include "tls/tls_profile_conf.h"
#include "tls/tls_tickets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* a.example, its issuer, and its key: for the OCSP response in the corpus, too. */
static const char certificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBeDCCAR2gAwIBAgIBBzAKBggqhkjOPQQDAjANMQswCQYDVQQDDAJDQTAgFw0y\n"
    "NjExMzAwNzEzNDRaGA8yMTI2MTEwNjA3MTM0NFowFDESMBAGA1UEAwwJYS5leGFt\n"
    "cGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENDO7XTjqizw6De5200xuszGq\n"
    "m5kghsFfvAf8LrH+R7is5s6DX7VPRM81zlr0cXyhPYCW10BH1mSvbAud4DsKRaNl\n"
    "MGMwIQYDVR0RBBowGIIJYS5leGFtcGxlggsqLmIuZXhhbXBsZTAdBgNVHQ4EFgQU\n"
    "aMMA5NofHTEzPM1YPUVRd+u7euowHwYDVR0jBBgwFoAUH3Trted5Va531uCM+VOQ\n"
    "9IUKRNkwCgYIKoZIzj0EAwIDSQAwRgIhAJd59dupAnXJSMx56y5eZPmy4i+/lc3g\n"
    "Duma7anNUPzpAiEA4QMO6Q5ID8CgEv4uWsOCIlAGLW6ri4/RR8ew/W6zpdA=\n"
    "-----END CERTIFICATE-----\n"
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBXzCCAQSgAwIBAgIBATAKBggqhkjOPQQDAjANMQswCQYDVQQDDAJDQTAgFw0y\n"
    "NjExMzAwNzEzNDRaGA8yMTI2MTEwNjA3MTM0NFowDTELMAkGA1UEAwwCQ0EwWTAT\n"
    "BgcqhkjOPQIBBggqhkjOPQMBBwNCAARSpP99rSnaBb+sKyosBQtEToQAIcEBDT83\n"
    "RPcW9J1UjtGcc+WpAEkvlbp4bxOArCr9871+rOaDJNYh6f9HPayPo1MwUTAdBgNV\n"
    "HQ4EFgQUH3Trted5Va531uCM+VOQ9IUKRNkwHwYDVR0jBBgwFoAUH3Trted5Va53\n"
    "1uCM+VOQ9IUKRNkwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEA\n"
    "yV4dwEaf/Z48Qf2QVf/fckZ3nsHmMM3P3I44EPUltCQCIQCCUjon5/zhiH8ahJCD\n"
    "1CNPhPljYJKRgsTTike795aAGw==\n"
    "-----END CERTIFICATE-----\n"
    "-----BEGIN EC PRIVATE KEY-----\n"
    "MHcCAQEEICYB5qLZcXbcRR6nfttpxRsMoeFceHvy7AsHM0dAMnQboAoGCCqGSM49\n"
    "AwEHoUQDQgAENDO7XTjqizw6De5200xuszGqm5kghsFfvAf8LrH+R7is5s6DX7VP\n"
    "RM81zlr0cXyhPYCW10BH1mSvbAud4DsKRQ==\n"
    "-----END EC PRIVATE KEY-----\n";

#define PATH_BYTES 64

/* Ticket keys that are handed over: a mark, a time, the number of keys, and the keys. */
#define HANDED_OVER_TIME    8
#define HANDED_OVER_KEYS    16
#define HANDED_OVER_PADDING 4

struct file {
    int fd;
    char path[PATH_BYTES];
};

static void file_open(struct file *f, const void *bytes, size_t size)
{
    f->fd = memfd_create("fuzz", MFD_CLOEXEC);
    MUST(f->fd >= 0);
    MUST(write(f->fd, bytes, size) == (ssize_t)size);
    snprintf(f->path, sizeof(f->path), "/proc/self/fd/%d", f->fd);
}

/* The profile of ${conf}, or NULL with a reason. */
static struct tls_profile *load(const struct tls_profile_conf *conf)
{
    struct tls_profile *profile = NULL;
    char why[256] = "";
    int rc = tls_profile_load(conf, &profile, why, sizeof(why));

    MUST(rc == 0 || rc == -EINVAL);
    if (rc == 0)
        return profile;
    MUST(why[0] != '\0' && strlen(why) < sizeof(why));
    for (const char *at = why; *at != '\0'; at++)
        MUST(*at >= ' ' && *at <= '~');
    return NULL;
}

static void load_twice(const struct tls_profile_conf *conf)
{
    struct tls_profile *profile = load(conf), *same;

    if (!profile)
        return;
    same = load(conf);
    MUST(same != NULL && tls_profile_same(profile, same));
    SSL_free(tls_profile_new_server(profile));
    tls_profile_release(same);
    tls_profile_release(profile);
}

/* A profile with the certificate above, or ${f}, which is then both. */
static void try_files(struct tls_profile_conf *conf, const struct file *f)
{
    struct file own;
    const char *path = own.path;

    file_open(&own, certificate, strlen(certificate));
    if (f)
        path = f->path;
    conf->name = "fuzz";
    conf->for_clients = true;
    conf->certificates = conf->keys = (struct tls_paths){&path, 1};
    load_twice(conf);
    close(own.fd);
}

static void try_handed_over(const uint8_t *data, size_t size)
{
    uint8_t keys[TLS_TICKETS_OWN_BYTES];

    if (size > sizeof(keys) || tls_tickets_import_own(data, size) < 0)
        return;
    MUST(tls_tickets_export_own(keys) == size);
    /* All but the time of the next key, which may be earlier, and padding at the end. */
    MUST(memcmp(keys, data, HANDED_OVER_TIME) == 0);
    MUST(memcmp(keys + HANDED_OVER_KEYS, data + HANDED_OVER_KEYS,
                size - HANDED_OVER_KEYS - HANDED_OVER_PADDING) == 0);
}

/* Its common name is UTF-8 that fits, or none. */
static void try_peer(const uint8_t *data, size_t size)
{
    char name[TLS_COMMON_NAME_BYTES];
    X509 *peer = d2i_X509(NULL, &data, (long)size);
    size_t len;

    if (peer) {
        len = tls_common_name(name, peer);
        MUST(len < sizeof(name) && strlen(name) == len);
        for (const char *at = name; *at != '\0'; at += text_character_bytes(at))
            MUST(text_character_bytes(at) > 0);
    }
    X509_free(peer);
    ERR_clear_error();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tls_profile_conf conf = {0};
    struct file f;
    const char *path = f.path;

    if (size == 0)
        return 0;
    file_open(&f, data + 1, size - 1);
    switch (data[0] % 6) {
    case 0: try_files(&conf, &f); break;
    case 1:
        conf.ocsp = (struct tls_paths){&path, 1};
        try_files(&conf, NULL);
        break;
    case 2:
        conf.tickets = (struct tls_paths){&path, 1};
        try_files(&conf, NULL);
        break;
    case 3:
        conf.client_ca = path;
        try_files(&conf, NULL);
        break;
    case 4: try_handed_over(data + 1, size - 1); break;
    case 5: try_peer(data + 1, size - 1); break;
    }
    close(f.fd);
    return 0;
}
