/* net/proxy_header: the headers that are written, with TLVs and what a client's TLS was. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "net/proxy_header.h"
#include "support/proxy_headers.h"
#include "support/sockets.h"
#include "support/suite.h"

/* ---- writing ---- */

GROUP(writing, NULL, NULL);

TEST(writing, version_1_is_encoded_as_specified)
{
    static const struct {
        const char *from, *to, *line;
    } rows[] = {
        {"192.0.2.1:56324", "198.51.100.1:443", "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"},
        {"[2001:db8::1]:1", "[2001:db8::2]:65535",
         "PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n"},
        {"192.0.2.1:1", "[2001:db8::2]:2", "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n"},
        {"[2001:db8::2]:2", "192.0.2.1:1", "PROXY TCP6 2001:db8::2 ::ffff:192.0.2.1 2 1\r\n"},
        {"/run/x.sock", "192.0.2.1:1", "PROXY UNKNOWN\r\n"},
        {"192.0.2.1:1", "@x", "PROXY UNKNOWN\r\n"},
    };
    uint8_t out[PROXY_HEADER_ENCODED_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = proxy_headers_encode(out, &proxy_headers.v1, rows[i].from, rows[i].to, NULL);

        ck_assert_uint_eq(len, strlen(rows[i].line));
        ck_assert_mem_eq(out, rows[i].line, len);
    }
}

TEST(writing, version_2_is_encoded_as_specified)
{
    uint8_t out[PROXY_HEADER_ENCODED_BYTES];

    ck_assert_uint_eq(
        proxy_headers_encode(out, &proxy_headers.v2, "192.0.2.1:56324", "198.51.100.1:443", NULL),
        28);
    ck_assert_mem_eq(out, MARK "\x21\x11\0\x0c" HOSTS, 28);
    ck_assert_uint_eq(proxy_headers_encode(out, &proxy_headers.v2, "[2001:db8::1]:7",
                                           "[2001:db8::2]:65535", NULL),
                      52);
    ck_assert_mem_eq(out, MARK "\x21\x21\0\x24" HOSTS_6, 52);
    ck_assert_uint_eq(proxy_headers_encode(out, &proxy_headers.v2, "@x", "192.0.2.1:1", NULL), 16);
    ck_assert_mem_eq(out, MARK "\x20\0\0\0", 16);
    ck_assert_uint_eq(proxy_headers_encode(out, &proxy_headers.v2_all, "192.0.2.1:1", "192.0.2.1:2",
                                           proxy_headers_id),
                      28 + 35 + 7);
    ck_assert_mem_eq(out + 28, "\5\0\x20", 3);
    ck_assert_mem_eq(out + 63, "\3\0\4", 3);
}

TEST(writing, header_without_addresses_is_unknown_in_version_1_and_local_in_version_2)
{
    uint8_t out[PROXY_HEADER_ENCODED_BYTES];
    struct proxy_header h;
    size_t len = proxy_headers_encode_addresses(out, &proxy_headers.v1, NULL, NULL, NULL);

    ck_assert_uint_eq(len, 15);
    ck_assert_mem_eq(out, "PROXY UNKNOWN\r\n", 15);
    len = proxy_headers_encode_addresses(out, &proxy_headers.v2_all, NULL, NULL, NULL);
    ck_assert_uint_eq(len, 16 + 7);
    ck_assert_int_eq(proxy_header_decode(&h, out, len), len);
    ck_assert(h.local);
}

TEST(writing, encoded_header_is_decoded_to_the_same_addresses)
{
    static const char *const texts[] = {"192.0.2.1:1", "0.0.0.0:65535", "[::1]:7",
                                        "[2001:db8::1]:65535"};
    static const struct proxy_header_conf *const confs[] = {&proxy_headers.v1, &proxy_headers.v2,
                                                            &proxy_headers.v2_all};
    uint8_t out[PROXY_HEADER_ENCODED_BYTES];

    for (size_t i = 0; i < 4 * 4 * 3; i++) {
        struct address from = sockets_address(texts[i % 4]), to = sockets_address(texts[i / 4 % 4]);
        size_t len =
            proxy_headers_encode_addresses(out, confs[i / 16], &from, &to, proxy_headers_id);
        struct proxy_header h;

        ck_assert_uint_le(len, sizeof(out));
        ck_assert_int_eq(proxy_header_decode(&h, out, len), len);
        ck_assert(!h.local && address_equal(&h.source, &from));
        ck_assert(address_equal(&h.destination, &to));
    }
}

/* ---- TLS ---- */

static const struct proxy_header_conf v2_tls = {.version = PROXY_HEADER_V2,
                                                .crc32c = true,
                                                .unique_id = true,
                                                .alpn = true,
                                                .authority = true,
                                                .ssl = true};
static uint8_t der[2 * PROXY_HEADER_MAX_BYTES];

static const struct proxy_header_ssl ssl = {
    .client = PROXY_HEADER_SSL_USED | PROXY_HEADER_SSL_CERTIFICATE | PROXY_HEADER_SSL_SESSION,
    .verify = 0x01020304,
    .version = "TLSv1.3",
    .cipher = "TLS_AES_128_GCM_SHA256",
    .name = "client",
    .certificate = {der, 1000}};

#define VALUE(text) ((struct proxy_header_value){(const uint8_t *)(text), sizeof(text) - 1})

static void expect_value(struct proxy_header_value value, const char *text)
{
    ck_assert_uint_eq(value.n, text ? strlen(text) : 0);
    if (text)
        ck_assert_mem_eq(value.at, text, value.n);
}

GROUP(tls, NULL, NULL);

TEST(tls, encoded_tls_values_are_decoded_to_the_same_values)
{
    struct address from = sockets_address("192.0.2.1:1"), to = sockets_address("192.0.2.1:2");
    struct proxy_header_client client = {
        .source = &from,
        .destination = &to,
        .unique_id = proxy_headers_id,
        .tls = {.alpn = VALUE("h2"), .authority = VALUE("a.example")}};
    uint8_t value[PROXY_HEADER_MAX_BYTES], out[PROXY_HEADER_MAX_BYTES];
    struct proxy_header h;
    size_t len;

    client.tls.ssl =
        (struct proxy_header_value){value, proxy_header_ssl_encode(value, sizeof(value), &ssl)};
    ck_assert_mem_eq(value, "\7\1\2\3\4\x21\0\7TLSv1.3\x22\0\6client\x23\0\x16TLS_", 31);
    len = proxy_header_encode(out, &v2_tls, &client);
    ck_assert_int_eq(proxy_header_decode(&h, out, len), len);
    expect_value(h.tls.alpn, "h2");
    expect_value(h.tls.authority, "a.example");
    ck_assert_uint_eq(h.tls.ssl.n, client.tls.ssl.n);
    ck_assert_mem_eq(h.tls.ssl.at, value, h.tls.ssl.n);
    expect_value(proxy_header_ssl_find(h.tls.ssl, PROXY_HEADER_SSL_NAME), "client");
    expect_value(proxy_header_ssl_find(h.tls.ssl, PROXY_HEADER_SSL_GROUP), NULL);
    ck_assert_uint_eq(proxy_header_ssl_find(h.tls.ssl, PROXY_HEADER_SSL_CERTIFICATE_DER).n, 1000);
    len = proxy_header_encode(out, &proxy_headers.v2_all, &client); /* not asked for */
    ck_assert_uint_eq(len, 28 + 35 + 7);
}

TEST(tls, values_that_do_not_fit_are_left_out)
{
    struct address from = sockets_address("[::1]:1"), to = sockets_address("192.0.2.1:2");
    struct proxy_header_client client = {
        .source = &from, .destination = &to, .unique_id = proxy_headers_id};
    struct proxy_header_ssl large = ssl;
    uint8_t value[PROXY_HEADER_MAX_BYTES], out[PROXY_HEADER_MAX_BYTES];
    struct proxy_header h;
    size_t len;

    large.certificate.n = sizeof(der);
    len = proxy_header_ssl_encode(value, sizeof(value), &large);
    ck_assert_uint_lt(len, 100);
    /* A well-formed TLV of each length around the limit. */
    for (size_t n = sizeof(value) - 160; n <= sizeof(value); n++) {
        large.certificate.n = n - len - 3;
        client.tls.ssl =
            (struct proxy_header_value){value, proxy_header_ssl_encode(value, n, &large)};
        ck_assert_uint_eq(client.tls.ssl.n, n);
        ck_assert_int_gt(proxy_header_decode(&h, out, proxy_header_encode(out, &v2_tls, &client)),
                         0);
        ck_assert(h.unique_id != NULL);
        ck_assert_uint_eq(h.tls.ssl.n, n <= sizeof(out) - 16 - 36 - 35 - 7 - 3 ? n : 0);
    }
}

TEST(tls, repeated_value_is_refused)
{
    struct proxy_header h;
    static const char twice[] = MARK "\x21\x11\0\x16" HOSTS "\1\0\2h2\1\0\2h2";

    ck_assert_int_eq(proxy_header_decode(&h, (const uint8_t *)twice, sizeof(twice) - 1), -EPROTO);
}
