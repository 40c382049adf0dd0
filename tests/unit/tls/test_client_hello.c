/* tls/client_hello: real hellos however they are divided, and what is none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/hello_builder.h"
#include "support/hellos.h"
#include "support/suite.h"
#include "tls/client_hello.h"
#include "tls/ja4.h"

/* The verdict on a hello with one extension. */
static int read_extension(unsigned type, const void *data, size_t len)
{
    struct client_hello hello;
    size_t at;
    int rc;

    hello_builder_begin(1);
    at = hello_builder.built_bytes;
    hello_builder_put(2, 0);
    hello_builder_put(2, type);
    hello_builder_put(2, len);
    hello_builder_put_bytes(data, len);
    hello_builder_end_extensions(at);
    rc = hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes);
    if (rc == 0)
        client_hello_free(&hello);
    return rc;
}

#define EXTENSION(type, text) read_extension(type, text, sizeof(text) - 1)

static const char *alpn_text(const struct client_hello *hello)
{
    static char text[256];
    struct client_hello_bytes list = hello->alpn, name;
    size_t n = 0;

    while (client_hello_alpn_next(&list, &name)) {
        if (n > 0)
            text[n++] = ',';
        memcpy(text + n, name.at, name.n);
        n += name.n;
    }
    text[n] = '\0';
    return text;
}

static void expect_hello(const struct hello *h, const struct client_hello_scan *scan,
                         const uint8_t *data)
{
    struct client_hello hello;
    char ja4[JA4_BYTES];

    ck_assert_int_eq(client_hello_read(&hello, scan, data), 0);
    ck_assert_str_eq(hello.sni, h->sni);
    ck_assert_int_eq(hello.has_sni, *h->sni != '\0');
    ck_assert_str_eq(alpn_text(&hello), h->alpn);
    ja4_write(ja4, &hello);
    ck_assert_str_eq(ja4, h->ja4);
    client_hello_free(&hello);
}

GROUP(real, NULL, NULL);

TEST_EACH(real, hello_is_read_at_each_split, HELLOS)
{
    uint8_t data[HELLO_MAX_BYTES];
    size_t len = hello_bytes(data, &hellos[_i]);

    for (size_t first = 0; first <= len; first++) {
        struct client_hello_scan scan = {0};
        uint8_t *part = malloc(first > 0 ? first : 1); /* a read too far is seen by a sanitizer */
        int rc;

        memcpy(part, data, first);
        rc = client_hello_scan(&scan, part, first);
        ck_assert_msg(rc == (first < len ? -EAGAIN : (int)len), "%zu bytes: %d", first, rc);
        free(part);
        ck_assert_int_eq(client_hello_scan(&scan, data, len), len);
        expect_hello(&hellos[_i], &scan, data);
    }
}

TEST_EACH(real, bytes_behind_the_hello_are_ignored, HELLOS)
{
    uint8_t data[HELLO_MAX_BYTES + 9];
    size_t len = hello_bytes(data, &hellos[_i]);
    struct client_hello_scan scan = {0};

    memcpy(data + len, "more data", 9);
    ck_assert_int_eq(client_hello_scan(&scan, data, len + 9), len);
    expect_hello(&hellos[_i], &scan, data);
}

TEST_EACH(real, a_hello_is_read_in_records_of_any_size_and_a_byte_at_a_time, HELLOS)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 100};
    uint8_t data[HELLO_MAX_BYTES], divided[6 * HELLO_MAX_BYTES];
    size_t len = hello_bytes(data, &hellos[_i]);

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t n = hello_in_records(divided, data, len, sizes[i]);
        struct client_hello_scan scan = {0};

        for (size_t have = 0; have < n; have++)
            ck_assert_int_eq(client_hello_scan(&scan, divided, have), -EAGAIN);
        ck_assert_int_eq(client_hello_scan(&scan, divided, n), n);
        expect_hello(&hellos[_i], &scan, divided);
    }
}

/* The only shorter hello is that without extensions, whose length follows two bytes "none". */
TEST_EACH(real, truncated_hello_is_refused, HELLOS)
{
    struct client_hello hello;
    size_t len = hello_bytes(hello_builder.built, &hellos[_i]);
    unsigned taken = 0;

    for (size_t keep = 9; keep < len; keep++) {
        int rc;

        (void)hello_bytes(hello_builder.built, &hellos[_i]);
        hello_builder.built_bytes = keep;
        hello_builder_seal();
        rc = hello_builder_read_hello(&hello, hello_builder.built, keep);
        if (rc == 0) {
            ck_assert_uint_eq(hello.extensions.n, 0);
            ck_assert_mem_eq(hello_builder.built + keep - 2, "\1\0", 2);
            client_hello_free(&hello);
            taken++;
        } else {
            ck_assert_int_eq(rc, -EPROTO);
        }
    }
    ck_assert_uint_eq(taken, 1);
}

/* Each is wrong from its last byte on, and not before. */
#define BYTES(text) text, sizeof(text) - 1

static const struct {
    const char *data;
    size_t len;
    int rc;
} bad[] = {
    {BYTES("G"), -ENOMSG},
    {BYTES("\x15"), -ENOMSG},
    {BYTES("\x80"), -ENOMSG},
    {BYTES("\x16\x02"), -ENOMSG},
    {BYTES("\x16\x03\x01\0\0"), -EPROTO},
    {BYTES("\x16\x03\x01\x40\x01"), -EPROTO},
    {BYTES("\x16\x03\x01\0\5\2"), -EPROTO},
    {BYTES("\x16\x03\x01\0\5\1\2\0\0"), -EMSGSIZE},
    {BYTES("\x16\x03\x01\0\5\1\0\0\0"), -EPROTO}, /* another message behind an empty one */
    {BYTES("\x16\x03\x01\0\1\1\x17"), -EPROTO},
    {BYTES("\x16\x03\x01\0\1\1\x14"), -EPROTO},
    {BYTES("\x16\x03\x01\0\1\1\x16\x03\x01\0\0"), -EPROTO},
    {BYTES("\x16\x03\x01\0\1\1\x16\x03\x01\0\5\0\0\1"), -EPROTO},
};

GROUP(records, NULL, NULL);

TEST_EACH(records, malformed_hello_is_refused_at_its_first_wrong_byte, ARRAY_LEN(bad))
{
    struct client_hello_scan scan = {0};

    for (size_t len = 0; len < bad[_i].len; len++)
        ck_assert_int_eq(client_hello_scan(&scan, (const uint8_t *)bad[_i].data, len), -EAGAIN);
    ck_assert_int_eq(client_hello_scan(&scan, (const uint8_t *)bad[_i].data, bad[_i].len),
                     bad[_i].rc);
}

TEST(records, maximum_hello_is_64_kib_with_its_record_headers)
{
    static uint8_t filled[CLIENT_HELLO_MAX_BYTES + 64], divided[CLIENT_HELLO_MAX_BYTES + 64];
    size_t fragment = 16384, records = 4, most = CLIENT_HELLO_MAX_BYTES - 5 * records;

    for (size_t extra = 0; extra < 2; extra++) {
        struct client_hello_scan scan = {0};
        size_t message = most + extra, n;

        memset(filled, 0, sizeof(filled));
        memcpy(filled, "\x16\x03\x01\0\0\x01\0", 7);
        filled[7] = (uint8_t)((message - 4) >> 8);
        filled[8] = (uint8_t)(message - 4);
        n = hello_in_records(divided, filled, 5 + message, fragment);
        ck_assert_uint_eq(n, CLIENT_HELLO_MAX_BYTES + extra);
        ck_assert_int_eq(client_hello_scan(&scan, divided, n),
                         extra > 0 ? -EMSGSIZE : CLIENT_HELLO_MAX_BYTES);
    }
}

TEST(records, many_small_records_count_towards_the_maximum)
{
    static uint8_t divided[2 * CLIENT_HELLO_MAX_BYTES];
    struct client_hello_scan scan = {0};
    uint8_t record[6] = {22, 3, 1, 0, 1, 0};
    size_t len = 0;
    int rc = -EAGAIN;

    for (; rc == -EAGAIN; len += sizeof(record)) {
        record[5] = len == 0 ? 1 : len == 12 ? 0x40 : 0;
        memcpy(divided + len, record, sizeof(record));
        rc = client_hello_scan(&scan, divided, len + sizeof(record));
    }
    ck_assert_int_eq(rc, -EMSGSIZE);
    ck_assert_uint_eq(len,
                      CLIENT_HELLO_MAX_BYTES / sizeof(record) * sizeof(record) + sizeof(record));
}

GROUP(message, NULL, NULL);

TEST(message, a_hello_without_extensions_is_read)
{
    struct client_hello hello;
    char ja4[JA4_BYTES];

    hello_builder_begin(1);
    hello_builder_seal();
    ck_assert_int_eq(
        hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes), 0);
    ck_assert_str_eq(hello.sni, "");
    ck_assert(!hello.has_sni);
    ck_assert_uint_eq(hello.alpn.n, 0);
    ja4_write(ja4, &hello);
    ck_assert_str_eq(ja4, "t12i010000_0f2cb44170f4_000000000000");
    client_hello_free(&hello);
}

/* A change of the byte ${at} behind the random bytes; see begin(). */
static const struct {
    size_t at;
    uint8_t byte;
} wrong[] = {
    {9, 2},   /* legacy_version */
    {43, 33}, /* session ID too long */
    {45, 0},  /* no cipher suite */
    {45, 1},  /* half a cipher suite */
    {45, 3},  /* too long by one */
    {48, 0},  /* no compression method */
    {48, 2},  /* one too many */
    {49, 1},  /* none is not offered */
};

TEST_EACH(message, malformed_field_is_refused, ARRAY_LEN(wrong))
{
    struct client_hello hello;

    hello_builder_begin(1);
    hello_builder_seal();
    hello_builder.built[wrong[_i].at] = wrong[_i].byte;
    ck_assert_int_eq(
        hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes), -EPROTO);
}

TEST(message, bytes_behind_the_extensions_are_refused)
{
    struct client_hello hello;
    size_t at;

    hello_builder_begin(1);
    at = hello_builder.built_bytes;
    hello_builder_put(2, 0);
    hello_builder_put_length(at, 2);
    hello_builder_put(1, 0);
    hello_builder_seal();
    ck_assert_int_eq(
        hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes), -EPROTO);
}

TEST(message, server_name_extension_has_exactly_one_host_name)
{
    ck_assert_int_eq(EXTENSION(0, "\0\4\0\0\1a"), 0);
    ck_assert_int_eq(EXTENSION(0, ""), -EPROTO);
    ck_assert_int_eq(EXTENSION(0, "\0\0"), -EPROTO);
    ck_assert_int_eq(EXTENSION(0, "\0\4\1\0\1a"), -EPROTO);
    ck_assert_int_eq(EXTENSION(0, "\0\4\0\0\1a\0"), -EPROTO);
    ck_assert_int_eq(EXTENSION(0, "\0\5\0\0\1ab"), -EPROTO);
    ck_assert_int_eq(EXTENSION(0, "\0\10\0\0\1a\0\0\1b"), -EPROTO);
}

/* A client that asks for no host name is not refused: it is for the server to say. */
static const struct {
    const char *name;
    size_t n;
} odd[] = {{BYTES("")},      {BYTES(".")},
           {BYTES("a..b")},  {BYTES(".a")},
           {BYTES("a.b..")}, {BYTES("a b")},
           {BYTES("a\0b")},  {BYTES("*.example")},
           {BYTES("[::1]")}, {BYTES("b\303\274cher.example")}};

TEST_EACH(message, invalid_host_name_counts_as_no_server_name, ARRAY_LEN(odd))
{
    struct client_hello hello;
    size_t at, n = odd[_i].n;

    hello_builder_begin(1);
    at = hello_builder.built_bytes;
    hello_builder_put(2, 0);
    hello_builder_put(2, 0);
    hello_builder_put(2, n + 5);
    hello_builder_put(2, n + 3);
    hello_builder_put(1, 0);
    hello_builder_put(2, n);
    hello_builder_put_bytes(odd[_i].name, n);
    hello_builder_end_extensions(at);
    ck_assert_int_eq(
        hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes), 0);
    ck_assert(hello.has_sni);
    ck_assert_str_eq(hello.sni, "");
    client_hello_free(&hello);
}

TEST(message, alpn_is_a_list_of_names)
{
    ck_assert_int_eq(EXTENSION(16, "\0\3\2h2"), 0);
    ck_assert_int_eq(EXTENSION(16, "\0\5\2h2\1x"), 0);
    ck_assert_int_eq(EXTENSION(16, "\0\0"), -EPROTO);
    ck_assert_int_eq(EXTENSION(16, "\0\1\0"), -EPROTO);
    ck_assert_int_eq(EXTENSION(16, "\0\4\2h2\0"), -EPROTO);
    ck_assert_int_eq(EXTENSION(16, "\0\4\2h2\1"), -EPROTO);
    ck_assert_int_eq(EXTENSION(16, "\0\3\2h2x"), -EPROTO);
    ck_assert_int_eq(EXTENSION(16, "\0\4\2h2"), -EPROTO);
}

TEST(message, versions_and_signatures_are_lists_of_numbers)
{
    ck_assert_int_eq(EXTENSION(43, "\2\3\4"), 0);
    ck_assert_int_eq(EXTENSION(43, "\0"), -EPROTO);
    ck_assert_int_eq(EXTENSION(43, "\3\3\4\3"), -EPROTO);
    ck_assert_int_eq(EXTENSION(43, "\2\3\4\3"), -EPROTO);
    ck_assert_int_eq(EXTENSION(13, "\0\2\4\3"), 0);
    ck_assert_int_eq(EXTENSION(13, "\0\0"), -EPROTO);
    ck_assert_int_eq(EXTENSION(13, "\0\1\4"), -EPROTO);
    ck_assert_int_eq(EXTENSION(13, "\0\4\4\3"), -EPROTO);
}

TEST(message, duplicate_extension_and_misplaced_psk_are_refused)
{
    struct client_hello hello;
    static const struct {
        unsigned first, second;
        int rc;
    } pairs[] = {{0xff01, 0xff01, -EPROTO}, {65535, 63, 0}, {41, 51, -EPROTO}, {51, 41, 0}};

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        size_t at;
        int rc;

        hello_builder_begin(1);
        at = hello_builder.built_bytes;
        hello_builder_put(2, 0);
        hello_builder_put(4, pairs[i].first << 16);
        hello_builder_put(4, pairs[i].second << 16);
        hello_builder_end_extensions(at);
        rc = hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes);
        ck_assert_int_eq(rc, pairs[i].rc);
        if (rc == 0)
            client_hello_free(&hello);
    }
}

TEST(message, lists_are_bounded)
{
    for (size_t more = 0; more < 2; more++) {
        size_t n = CLIENT_HELLO_MAX_LIST + more, at;
        int expected = more > 0 ? -EMSGSIZE : 0;
        struct client_hello hello;
        char ja4[JA4_BYTES];

        hello_builder_begin(n);
        hello_builder_seal();
        ck_assert_int_eq(
            hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes),
            expected);
        hello_builder_begin(1);
        at = hello_builder.built_bytes;
        hello_builder_put(2, 0);
        for (size_t i = 0; i < n; i++)
            hello_builder_put(4, (1000 + i) << 16);
        hello_builder_end_extensions(at);
        ck_assert_int_eq(
            hello_builder_read_hello(&hello, hello_builder.built, hello_builder.built_bytes),
            expected);
        if (more > 0)
            continue;
        ja4_write(ja4, &hello);
        ck_assert_mem_eq(ja4, "t12i019900_", 11);
        client_hello_free(&hello);
    }
}
