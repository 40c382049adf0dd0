#include "tls/ja4.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_CHARACTERS    12
#define HASH_OF_NOTHING    "000000000000"
#define EXTENSION_SNI      0
#define EXTENSION_ALPN     16
#define NUMBER_CHARACTERS  5 /* four digits, and a comma or underscore */
#define NUMBERS_TEXT_BYTES (2 * CLIENT_HELLO_MAX_LIST * NUMBER_CHARACTERS + 1)

struct ja4_numbers {
    uint16_t list[CLIENT_HELLO_MAX_LIST];
    unsigned n;
};

static void ja4_add(struct ja4_numbers *numbers, uint16_t number)
{
    if (client_hello_is_grease(number))
        return;
    MUST(numbers->n < CLIENT_HELLO_MAX_LIST);
    numbers->list[numbers->n++] = number;
}

static void ja4_read_numbers(struct ja4_numbers *out, struct client_hello_bytes from)
{
    uint16_t number;

    out->n = 0;
    while (client_hello_next_16(&from, &number))
        ja4_add(out, number);
}

static void ja4_read_extensions(struct ja4_numbers *out, struct client_hello_bytes from)
{
    uint16_t type;

    out->n = 0;
    while (client_hello_next_extension(&from, &type))
        ja4_add(out, type);
}

static int ja4_compare(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

static void ja4_sort(struct ja4_numbers *numbers)
{
    qsort(numbers->list, numbers->n, sizeof(numbers->list[0]), ja4_compare);
}

/* Write ${numbers} in hexadecimal, separated by commas; return the end. */
static char *ja4_put_numbers(char *at, const struct ja4_numbers *numbers)
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < numbers->n; i++) {
        if (i > 0)
            *at++ = ',';
        for (int shift = 12; shift >= 0; shift -= 4)
            *at++ = digits[numbers->list[i] >> shift & 0xf];
    }
    return at;
}

static bool ja4_put_hash(char *out, const char *text, size_t len)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];

    if (!SHA256((const unsigned char *)text, len, hash))
        return false;
    for (unsigned i = 0; i < HASH_CHARACTERS / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", hash[i]);
    return true;
}

static bool ja4_put_ciphers(char *out, struct ja4_numbers *ciphers)
{
    char text[NUMBERS_TEXT_BYTES];

    if (ciphers->n == 0) {
        strcpy(out, HASH_OF_NOTHING);
        return true;
    }
    ja4_sort(ciphers);
    return ja4_put_hash(out, text, (size_t)(ja4_put_numbers(text, ciphers) - text));
}

/* Drop SNI and ALPN: the first part of the fingerprint has them. */
static void ja4_drop_told(struct ja4_numbers *extensions)
{
    unsigned n = 0;

    for (unsigned i = 0; i < extensions->n; i++)
        if (extensions->list[i] != EXTENSION_SNI && extensions->list[i] != EXTENSION_ALPN)
            extensions->list[n++] = extensions->list[i];
    extensions->n = n;
}

static bool ja4_put_extensions(char *out, struct ja4_numbers *extensions,
                               const struct client_hello *hello)
{
    char text[NUMBERS_TEXT_BYTES], *end;
    struct ja4_numbers signatures;

    ja4_drop_told(extensions);
    if (extensions->n == 0) {
        strcpy(out, HASH_OF_NOTHING);
        return true;
    }
    ja4_sort(extensions);
    end = ja4_put_numbers(text, extensions);
    ja4_read_numbers(&signatures, hello->signatures);
    if (signatures.n > 0) {
        *end++ = '_';
        end = ja4_put_numbers(end, &signatures);
    }
    return ja4_put_hash(out, text, (size_t)(end - text));
}

static const char *ja4_version(const struct client_hello *hello)
{
    switch (client_hello_highest(hello)) {
    case 0x0304: return "13";
    case 0x0303: return "12";
    case 0x0302: return "11";
    case 0x0301: return "10";
    case 0x0300: return "s3";
    default: return "00";
    }
}

static bool ja4_is_alphanumeric(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/*
 * Write the first and last character of the first ALPN name. If they are not both letters or
 * digits, take them from the hexadecimal form of the name.
 */
static void ja4_put_alpn(char *out, struct client_hello_bytes alpn)
{
    struct client_hello_bytes name;
    uint8_t first, last;

    strcpy(out, "00");
    if (!client_hello_alpn_next(&alpn, &name))
        return;
    first = name.at[0];
    last = name.at[name.n - 1];
    if (ja4_is_alphanumeric(first) && ja4_is_alphanumeric(last))
        snprintf(out, 3, "%c%c", first, last);
    else
        snprintf(out, 3, "%x%x", first >> 4, last & 0xf);
}

static unsigned ja4_count(const struct ja4_numbers *numbers)
{
    return numbers->n < 99 ? numbers->n : 99;
}

void ja4_write(char *out, const struct client_hello *hello)
{
    char alpn[3], ciphers_hash[HASH_CHARACTERS + 1], extensions_hash[HASH_CHARACTERS + 1];
    struct ja4_numbers ciphers, extensions;
    unsigned n_ciphers, n_extensions;

    ja4_read_numbers(&ciphers, hello->ciphers);
    ja4_read_extensions(&extensions, hello->extensions);
    n_ciphers = ja4_count(&ciphers);
    n_extensions = ja4_count(&extensions);
    ja4_put_alpn(alpn, hello->alpn);
    out[0] = '\0';
    if (ja4_put_ciphers(ciphers_hash, &ciphers) &&
        ja4_put_extensions(extensions_hash, &extensions, hello))
        snprintf(out, JA4_BYTES, "t%s%c%02u%02u%s_%s_%s", ja4_version(hello),
                 hello->has_sni ? 'd' : 'i', n_ciphers, n_extensions, alpn, ciphers_hash,
                 extensions_hash);
}
