#include "tls/tls_tickets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/clock.h"
#include "engine/lock.h"

#define TLS_TICKETS_NAME_BYTES 16
#define TLS_TICKETS_SHORT      48 /* AES-128 and 16 bytes for HMAC */
#define TLS_TICKETS_LONG       80 /* AES-256 and 32 bytes for HMAC */
#define TLS_TICKETS_KEYS       64

struct tls_tickets_key {
    unsigned char name[TLS_TICKETS_NAME_BYTES];
    unsigned char aes[32], hmac[32];
    unsigned bytes; /* of `aes`, and of `hmac`: 16 or 32 */
};

struct tls_tickets {
    unsigned n;
    struct tls_tickets_key keys[TLS_TICKETS_KEYS];
};

/* ---- files ---- */

/* The parts are name, AES, HMAC; in nginx's keys of 80 bytes HMAC comes before AES. */
static void tls_tickets_set(struct tls_tickets_key *key, const unsigned char *raw, size_t len,
                            bool hmac_first)
{
    unsigned bytes = len == TLS_TICKETS_LONG ? 32 : 16;
    const unsigned char *first = raw + TLS_TICKETS_NAME_BYTES, *second = first + bytes;

    key->bytes = bytes;
    memcpy(key->name, raw, TLS_TICKETS_NAME_BYTES);
    memcpy(key->aes, hmac_first ? second : first, bytes);
    memcpy(key->hmac, hmac_first ? first : second, bytes);
}

static int tls_tickets_add(struct tls_tickets *t, const unsigned char *raw, size_t len,
                           bool hmac_first)
{
    if (t->n == TLS_TICKETS_KEYS)
        return -E2BIG;
    tls_tickets_set(&t->keys[t->n++], raw, len, hmac_first);
    return 0;
}

/* Decode a line of ${len} characters; return the length of the key, or 0. */
static size_t tls_tickets_decode(unsigned char *raw, const char *line, size_t len)
{
    size_t padding = 0;
    int n;

    if (len != 64 && len != 108) /* base64 of 48 and 80 bytes */
        return 0;
    while (padding < 2 && line[len - 1 - padding] == '=')
        padding++;
    n = EVP_DecodeBlock(raw, (const unsigned char *)line, (int)len);
    if (n < 0)
        return 0;
    n -= (int)padding;
    return n == TLS_TICKETS_SHORT || n == TLS_TICKETS_LONG ? (size_t)n : 0;
}

static int tls_tickets_read_lines(struct tls_tickets *t, const struct file_content *f,
                                  const char *path, struct tls_load *l)
{
    unsigned char raw[TLS_TICKETS_LONG + 1];
    unsigned line = 1;

    for (size_t at = 0; at < f->len; line++) {
        const char *begin = f->bytes + at, *end = memchr(begin, '\n', f->len - at);
        size_t len = end ? (size_t)(end - begin) : f->len - at, bytes;
        bool is_full;

        at += len + 1;
        if (len == 0)
            continue;
        bytes = tls_tickets_decode(raw, begin, len);
        is_full = bytes > 0 && tls_tickets_add(t, raw, bytes, false) < 0;
        OPENSSL_cleanse(raw, sizeof(raw));
        if (bytes == 0)
            return tls_load_refuse(l, "%s:%u: is no key (48 or 80 bytes in base64)", path, line);
        if (is_full)
            return tls_load_refuse(l, "%s: too many keys (at most %d)", path, TLS_TICKETS_KEYS);
    }
    return 0;
}

static int tls_tickets_read(struct tls_tickets *t, const char *path, struct tls_load *l)
{
    struct file_content f;
    int rc = tls_load_read(l, &f, path);

    if (rc < 0)
        return rc;
    if (f.others_read)
        tls_load_warn(l, "%s: all users can read the keys (chmod o-r)", path);
    if (f.len != TLS_TICKETS_SHORT && f.len != TLS_TICKETS_LONG)
        rc = tls_tickets_read_lines(t, &f, path, l);
    else if (tls_tickets_add(t, (const unsigned char *)f.bytes, f.len, f.len == TLS_TICKETS_LONG) <
             0)
        rc = tls_load_refuse(l, "%s: too many keys (at most %d)", path, TLS_TICKETS_KEYS);
    OPENSSL_cleanse(f.bytes, f.len);
    free(f.bytes);
    return rc;
}

int tls_tickets_load(struct tls_tickets **out, const struct tls_paths *paths, struct tls_load *l)
{
    struct tls_tickets *t = calloc(1, sizeof(*t));
    int rc = t ? 0 : tls_load_memory(l);

    for (unsigned i = 0; rc == 0 && i < paths->n; i++)
        rc = tls_tickets_read(t, paths->list[i], l);
    if (rc == 0 && t->n == 0)
        rc = tls_load_refuse(l, "%s: there is no key", paths->list[0]);
    if (rc < 0)
        tls_tickets_destroy(t);
    else
        *out = t;
    return rc;
}

void tls_tickets_destroy(struct tls_tickets *t)
{
    if (!t)
        return;
    OPENSSL_cleanse(t, sizeof(*t));
    free(t);
}

/* ---- keys of the process ---- */

/*
 * Two keys: each encrypts for at least TLS_TICKETS_SECONDS, then only decrypts for at least as
 * long.
 */
static struct {
    struct lock lock;
    bool is_ready; /* tls_tickets_prepare_own() has run */
    int64_t rotate_at_ns;
    struct tls_tickets keys;
} own;

static void tls_tickets_prepare_own(void)
{
    lock_init(&own.lock);
    own.rotate_at_ns = INT64_MIN;
    own.is_ready = true;
}

/* Replace the encrypting key when its time is over; false: no random bytes. */
static bool tls_tickets_rotate_own(void)
{
    unsigned char raw[TLS_TICKETS_LONG];
    int64_t now_ns = clock_now_ns();

    if (now_ns < own.rotate_at_ns)
        return true;
    if (RAND_bytes(raw, sizeof(raw)) != 1)
        return false;
    own.keys.keys[1] = own.keys.keys[0];
    tls_tickets_set(&own.keys.keys[0], raw, sizeof(raw), false);
    own.keys.n = own.keys.n > 0 ? 2 : 1;
    own.rotate_at_ns = now_ns + TLS_TICKETS_SECONDS * NS_PER_S;
    OPENSSL_cleanse(raw, sizeof(raw));
    return true;
}

static bool tls_tickets_own_ready(void)
{
    static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;

    return CRYPTO_THREAD_run_once(&once, tls_tickets_prepare_own) && own.is_ready;
}

/* What one process gives to the next: the clock is the same for both. */
struct tls_tickets_gift {
    char mark[8];
    int64_t rotate_at_ns;
    uint32_t n;
    struct tls_tickets_key keys[2];
};

_Static_assert(sizeof(struct tls_tickets_gift) <= TLS_TICKETS_OWN_BYTES, "too small");

static const char tls_tickets_mark[8] = "tickets1";

size_t tls_tickets_export_own(uint8_t *out)
{
    struct tls_tickets_gift gift;

    if (!tls_tickets_own_ready())
        return 0;
    memset(&gift, 0, sizeof(gift)); /* padding too */
    memcpy(gift.mark, tls_tickets_mark, sizeof(gift.mark));
    lock_take(&own.lock);
    gift.rotate_at_ns = own.rotate_at_ns;
    gift.n = own.keys.n;
    memcpy(gift.keys, own.keys.keys, sizeof(gift.keys));
    lock_release(&own.lock);
    if (gift.n == 0)
        return 0;
    memcpy(out, &gift, sizeof(gift));
    OPENSSL_cleanse(&gift, sizeof(gift));
    return sizeof(gift);
}

static bool tls_tickets_gift_is_valid(const struct tls_tickets_gift *gift)
{
    bool is_valid = memcmp(gift->mark, tls_tickets_mark, sizeof(gift->mark)) == 0 && gift->n > 0 &&
                    gift->n <= ARRAY_LEN(gift->keys);

    for (unsigned i = 0; is_valid && i < gift->n; i++)
        is_valid = gift->keys[i].bytes == sizeof(gift->keys[i].aes);
    return is_valid;
}

int tls_tickets_import_own(const uint8_t *data, size_t len)
{
    struct tls_tickets_gift gift;
    int64_t latest_ns = clock_now_ns() + TLS_TICKETS_SECONDS * NS_PER_S;
    int rc = len == sizeof(gift) && tls_tickets_own_ready() ? 0 : -EINVAL;

    if (rc < 0)
        return rc;
    memcpy(&gift, data, sizeof(gift));
    if (tls_tickets_gift_is_valid(&gift)) {
        lock_take(&own.lock);
        own.rotate_at_ns = gift.rotate_at_ns < latest_ns ? gift.rotate_at_ns : latest_ns;
        own.keys.n = gift.n;
        memcpy(own.keys.keys, gift.keys, sizeof(gift.keys));
        lock_release(&own.lock);
    } else {
        rc = -EINVAL;
    }
    OPENSSL_cleanse(&gift, sizeof(gift));
    return rc;
}

/* ---- use ---- */

static int tls_tickets_find(const struct tls_tickets *t, const struct tls_tickets_use *use)
{
    if (use->encrypts)
        return 0;
    for (unsigned i = 0; i < t->n; i++)
        if (memcmp(t->keys[i].name, use->name, TLS_TICKETS_NAME_BYTES) == 0)
            return (int)i;
    return -1;
}

static bool tls_tickets_set_up(const struct tls_tickets_key *key, const struct tls_tickets_use *use)
{
    const EVP_CIPHER *cipher = key->bytes == 32 ? EVP_aes_256_cbc() : EVP_aes_128_cbc();
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_end()};

    if (EVP_MAC_init(use->mac, key->hmac, key->bytes, params) != 1)
        return false;
    if (!use->encrypts)
        return EVP_DecryptInit_ex(use->cipher, cipher, NULL, key->aes, use->iv) == 1;
    memcpy(use->name, key->name, TLS_TICKETS_NAME_BYTES);
    return RAND_bytes(use->iv, EVP_CIPHER_get_iv_length(cipher)) == 1 &&
           EVP_EncryptInit_ex(use->cipher, cipher, NULL, key->aes, use->iv) == 1;
}

static int tls_tickets_use_key(const struct tls_tickets *t, const struct tls_tickets_use *use)
{
    int i = tls_tickets_find(t, use);

    if (i < 0)
        return 0;
    if (!tls_tickets_set_up(&t->keys[i], use))
        return -1;
    return i == 0 ? 1 : 2;
}

int tls_tickets_use(const struct tls_tickets *t, const struct tls_tickets_use *use)
{
    int rc = -1;

    if (t)
        return tls_tickets_use_key(t, use);
    if (!tls_tickets_own_ready())
        return -1;
    lock_take(&own.lock);
    if (tls_tickets_rotate_own())
        rc = tls_tickets_use_key(&own.keys, use);
    lock_release(&own.lock);
    return rc;
}
