/* net/proxy_header: what is a header, however it comes, and what is none. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "net/proxy_header.h"
#include "support/proxy_headers.h"
#include "support/suite.h"

#define BYTES(text) text, sizeof(text) - 1

static const char mapped_6[] = "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n";

static const char longest_1[] = "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";

static const char longest_unknown[] = "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
                                      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";

static const struct {
    const char *data;
    size_t len;
    const char *source; /* NULL: local */
    const char *destination;
} good[] = {
    {BYTES("PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"), "192.0.2.1:56324",
     "198.51.100.1:443"},
    {BYTES("PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n"), "0.0.0.0:0", "255.255.255.255:65535"},
    {BYTES("PROXY TCP6 2001:db8::1 2001:DB8::2 7 65535\r\n"), "[2001:db8::1]:7",
     "[2001:db8::2]:65535"},
    {BYTES(mapped_6), "192.0.2.1:1", "[2001:db8::2]:2"},
    {BYTES(longest_1), "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
     "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"},
    {BYTES("PROXY UNKNOWN\r\n"), NULL, NULL},
    {BYTES("PROXY UNKNOWN \r\n"), NULL, NULL},
    {BYTES("PROXY UNKNOWN what\0ever \xff\r\n"), NULL, NULL},
    {BYTES(longest_unknown), NULL, NULL},
    {BYTES(MARK "\x21\x11\0\x0c" HOSTS), "192.0.2.1:56324", "198.51.100.1:443"},
    {BYTES(MARK "\x21\x21\0\x24" HOSTS_6), "[2001:db8::1]:7", "[2001:db8::2]:65535"},
    {BYTES(MARK "\x20\0\0\0"), NULL, NULL},
    {BYTES(MARK "\x20\x99\0\3abc"), NULL, NULL}, /* what LOCAL has is ignored, with its family */
    {BYTES(MARK "\x20\x11\0\x0c" HOSTS), NULL, NULL},
    {BYTES(MARK "\x21\0\0\0"), NULL, NULL},
    {BYTES(MARK "\x21\0\0\5hello"), NULL, NULL},
    {BYTES(MARK "\x21\x11\0\x0f" HOSTS "\4\0\0"), "192.0.2.1:56324", "198.51.100.1:443"},
    {BYTES(MARK "\x21\x11\0\x16" HOSTS "\1\0\2h2\xe0\0\2xy"), "192.0.2.1:56324",
     "198.51.100.1:443"},
    {BYTES(MARK "\x21\x11\0\x19" HOSTS "\x20\0\x0a\1\0\0\0\0\x21\0\2v1"), "192.0.2.1:56324",
     "198.51.100.1:443"},
};

static void expect_address(const struct address *a, const char *text)
{
    char got[ADDRESS_TEXT_BYTES];

    ck_assert_str_eq(address_format(got, sizeof(got), a), text);
}

GROUP(reading, NULL, NULL);

TEST_EACH(reading, a_header_is_read_and_its_end_found, ARRAY_LEN(good))
{
    struct proxy_header h;
    uint8_t data[256];

    memset(data, 'x', sizeof(data));
    memcpy(data, good[_i].data, good[_i].len);
    for (size_t more = 0; more < 3; more++)
        ck_assert_int_eq(proxy_header_decode(&h, data, good[_i].len + more), good[_i].len);
    ck_assert_int_eq(h.local, good[_i].source == NULL);
    if (h.local)
        return;
    expect_address(&h.source, good[_i].source);
    expect_address(&h.destination, good[_i].destination);
}

TEST_EACH(reading, partial_header_at_each_split_asks_for_more_bytes, ARRAY_LEN(good))
{
    struct proxy_header h;

    memset(&h, 0x55, sizeof(h));
    for (size_t len = 0; len < good[_i].len; len++) {
        /* Exactly as many bytes, so that a sanitizer sees one read too far. */
        uint8_t *part = malloc(len > 0 ? len : 1);

        memcpy(part, good[_i].data, len);
        ck_assert_msg(proxy_header_decode(&h, part, len) == -EAGAIN, "%zu bytes", len);
        free(part);
    }
    for (size_t i = 0; i < sizeof(h); i++)
        ck_assert_uint_eq(((uint8_t *)&h)[i], 0x55);
}

/* Each is wrong from its last byte on, and not before. */
static const struct {
    const char *data;
    size_t len;
    int rc;
} bad[] = {
    {BYTES("G"), -ENOMSG},
    {BYTES("p"), -ENOMSG},
    {BYTES("\n"), -ENOMSG},
    {BYTES("PR0"), -ENOMSG},
    {BYTES("PROXY\r"), -ENOMSG},
    {BYTES("\r\n\r\n\0\r\nQUIT\r"), -ENOMSG},
    {BYTES("\r\nx"), -ENOMSG},
    {BYTES("PROXY  "), -EPROTO},
    {BYTES("PROXY t"), -EPROTO},
    {BYTES("PROXY TCP5"), -EPROTO},
    {BYTES("PROXY TCP4\r"), -EPROTO},
    {BYTES("PROXY TCP4  "), -EPROTO},
    {BYTES("PROXY TCP4 :"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3 "), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.256"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.04"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4\r"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4\t"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4\0"), -EPROTO},
    {BYTES("PROXY TCP4 1111"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.4."), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5  "), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 +"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 01"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 65536"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 123456"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 1\r"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 1 2 "), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 1 \r"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 1 2\n"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 1 2\rx"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 1 2\r\r"), -EPROTO},
    {BYTES("PROXY TCP4 1.2.3.4 1.2.3.5 1 00"), -EPROTO},
    {BYTES("PROXY TCP6 1."), -EPROTO},
    {BYTES("PROXY TCP6 ::g"), -EPROTO},
    {BYTES("PROXY TCP6 ["), -EPROTO},
    {BYTES("PROXY TCP6 :: ::1%"), -EPROTO},
    {BYTES("PROXY TCP6 1::2::"), -EPROTO},
    {BYTES("PROXY TCP6 1:2:3:4:5:6:7:8:"), -EPROTO},
    {BYTES("PROXY TCP6 12345"), -EPROTO},
    {BYTES("PROXY TCP6 :::"), -EPROTO},
    {BYTES("PROXY TCP6 1:2:3:4:5:6:1.2.3.2555"), -EPROTO},
    {BYTES("PROXY TCP6 1:2:3:4:5:6:7.8.9.1 1:2:3:4:5:6:7:1."), -EPROTO},
    {BYTES("PROXY UNKNOWNS"), -EPROTO},
    {BYTES("PROXY UNKNOWN\n"), -EPROTO},
    {BYTES("PROXY UNKNOWN\rx"), -EPROTO},
    {BYTES("PROXY UNKNOWN x\n"), -EPROTO},
    {BYTES("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
           "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535 \r"),
     -EPROTO},
    {BYTES(MARK "\x11"), -EPROTO},
    {BYTES(MARK "\x31"), -EPROTO},
    {BYTES(MARK "\x22"), -EPROTO},
    {BYTES(MARK "\x21\x12"), -EPROTO},
    {BYTES(MARK "\x21\x22"), -EPROTO},
    {BYTES(MARK "\x21\x32"), -EPROTO},
    {BYTES(MARK "\x21\x10"), -EPROTO},
    {BYTES(MARK "\x21\x01"), -EPROTO},
    {BYTES(MARK "\x21\x41"), -EPROTO},
    {BYTES(MARK "\x21\x11\0\x0b"), -EPROTO},
    {BYTES(MARK "\x21\x21\0\x23"), -EPROTO},
    {BYTES(MARK "\x21\x31\0\xd7"), -EPROTO},
    {BYTES(MARK "\x21\x11\x0f\xf1"), -EMSGSIZE},
    {BYTES(MARK "\x20\0\xff\xff"), -EMSGSIZE},
    {BYTES(MARK "\x21\x11\0\x0d" HOSTS), -EPROTO},              /* no TLV is that short */
    {BYTES(MARK "\x21\x11\0\x10" HOSTS "\4\0\2"), -EPROTO},     /* this one is too long */
    {BYTES(MARK "\x21\x11\0\x11" HOSTS "\4\0\0"), -EPROTO},     /* 2 bytes are left over */
    {BYTES(MARK "\x21\x11\0\x12" HOSTS "\3\0\3abc"), -EPROTO},  /* no checksum has 3 bytes */
    {BYTES(MARK "\x21\x11\0\x13" HOSTS "\3\0\4abcd"), -EPROTO}, /* it is another one */
    {BYTES(MARK "\x21\x11\0\x13" HOSTS "\x20\0\4\1\0\0\0"), -EPROTO},
    {BYTES(MARK "\x21\x11\0\x17" HOSTS "\x20\0\x08\1\0\0\0\0\x21\0\1"), -EPROTO},
    {BYTES(MARK "\x21\x11\0\x15" HOSTS "\x20\0\x06\1\0\0\0\0\x21"), -EPROTO},
};

TEST_EACH(reading, malformed_header_is_refused_at_its_first_wrong_byte, ARRAY_LEN(bad))
{
    struct proxy_header h;
    const uint8_t *data = (const uint8_t *)bad[_i].data;

    memset(&h, 0x55, sizeof(h));
    ck_assert_int_eq(proxy_header_decode(&h, data, bad[_i].len), bad[_i].rc);
    ck_assert_int_eq(proxy_header_decode(&h, data, bad[_i].len - 1), -EAGAIN);
    for (size_t i = 0; i < sizeof(h); i++)
        ck_assert_uint_eq(((uint8_t *)&h)[i], 0x55);
}

/* ---- unix sockets ---- */

static int decode_unix(struct proxy_header *h, const char *source, size_t len)
{
    uint8_t data[16 + 216] = MARK "\x21\x31\0\xd8";

    memset(data + 16, 0, 216);
    memcpy(data + 16, source, len);
    memcpy(data + 16 + 108, "/run/x.sock", 11);
    return proxy_header_decode(h, data, sizeof(data));
}

TEST(reading, unix_addresses_are_paths_names_or_nothing)
{
    struct proxy_header h;
    char full[108];

    ck_assert_int_eq(decode_unix(&h, BYTES("/tmp/a")), 232);
    expect_address(&h.source, "/tmp/a");
    ck_assert_uint_eq(h.source.len, offsetof(struct sockaddr_un, sun_path) + sizeof("/tmp/a"));
    expect_address(&h.destination, "/run/x.sock");
    ck_assert_int_eq(decode_unix(&h, BYTES("/tmp/a\0rest")), 232);
    expect_address(&h.source, "/tmp/a");
    ck_assert_int_eq(decode_unix(&h, BYTES("\0name")), 232);
    expect_address(&h.source, "@name");
    ck_assert_uint_eq(h.source.len, offsetof(struct sockaddr_un, sun_path) + strlen("@name"));
    ck_assert_int_eq(decode_unix(&h, BYTES("")), 232);
    expect_address(&h.source, "unix:");
    memset(full, 'y', sizeof(full));
    ck_assert_int_eq(decode_unix(&h, full, sizeof(full)), 232);
    ck_assert_uint_eq(h.source.len, sizeof(struct sockaddr_un));
    expect_address(&h.destination, "/run/x.sock");
}

GROUP(TLVs, NULL, NULL);

TEST(TLVs, the_unique_id_is_handed_out)
{
    uint8_t data[PROXY_HEADER_ENCODED_BYTES];
    struct proxy_header h;
    size_t len = proxy_headers_encode(data, &proxy_headers.v2_all, "192.0.2.1:1", "192.0.2.2:2",
                                      proxy_headers_id);

    ck_assert_int_eq(proxy_header_decode(&h, data, len), len);
    ck_assert_uint_eq(h.unique_id_bytes, strlen(proxy_headers_id));
    ck_assert_mem_eq(h.unique_id, proxy_headers_id, strlen(proxy_headers_id));
    ck_assert(h.unique_id > data && h.unique_id < data + len);
}

static void is_found(const struct proxy_header *h, uint8_t type, const char *value)
{
    struct proxy_header_value found = proxy_header_tlv_find(h->tlvs, type);

    ck_assert(found.at);
    ck_assert_uint_eq(found.n, strlen(value));
    ck_assert_mem_eq(found.at, value, found.n);
}

TEST(TLVs, any_field_is_found_by_its_type_and_of_several_the_first)
{
    const uint8_t data[] = MARK "\x21\x11\0\x1d" HOSTS "\xea\0\3one"
                                "\x04\0\0"
                                "\xea\0\2no"
                                "\xeb\0\0";
    struct proxy_header h;

    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data) - 1), sizeof(data) - 1);
    is_found(&h, 0xea, "one");
    is_found(&h, 0xeb, "");
    ck_assert_ptr_null(proxy_header_tlv_find(h.tlvs, 0xec).at);
}

TEST(TLVs, header_without_fields_has_none_to_find)
{
    const uint8_t data[] = MARK "\x21\x11\0\x0c" HOSTS;
    struct proxy_header h;

    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data) - 1), sizeof(data) - 1);
    ck_assert_ptr_null(proxy_header_tlv_find(h.tlvs, 0xea).at);
}

TEST(TLVs, a_unique_id_has_128_bytes_at_most)
{
    uint8_t data[16 + 12 + 3 + 129] = MARK "\x21\x11\0\x8f" HOSTS "\5\0\x80";
    struct proxy_header h;

    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data) - 1), sizeof(data) - 1);
    ck_assert_uint_eq(h.unique_id_bytes, 128);
    data[15]++;
    data[30]++;
    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data)), -EPROTO);
}

/*
 * A byte that hides the checksum: LOCAL and UNSPEC have none, nor has what ends before it, or
 * another type.
 */
static bool hides(size_t at, unsigned value, size_t len)
{
    return (at == 12 && value == 0x20) || (at == 13 && value == 0) ||
           (at == 15 && value == len - 16 - 7) || at == len - 7;
}

TEST_EACH(TLVs, checksum_detects_each_changed_byte_unless_the_change_hides_the_checksum, 2)
{
    static const struct proxy_header_conf v2_crc32c = {.version = PROXY_HEADER_V2, .crc32c = true};
    uint8_t data[PROXY_HEADER_ENCODED_BYTES];
    struct proxy_header h;
    const char *from = _i == 0 ? "192.0.2.1:1" : "[2001:db8::1]:1";
    size_t len = proxy_headers_encode(data, &v2_crc32c, from, "192.0.2.2:2", NULL);

    ck_assert_int_eq(proxy_header_decode(&h, data, len), len);
    for (size_t at = 0; at < len; at++) {
        uint8_t was = data[at];

        for (unsigned value = 0; value < 256; value++) {
            data[at] = (uint8_t)value;
            if (value != was && !hides(at, value, len))
                ck_assert_msg(proxy_header_decode(&h, data, len) < 0, "%zu: %02x", at, value);
        }
        data[at] = was;
    }
}

/* Without one: what passes is another header, which is written with the changed byte. */
TEST_EACH(TLVs, changed_byte_that_passes_without_a_checksum_decodes_consistently, 2)
{
    uint8_t data[PROXY_HEADER_ENCODED_BYTES], again[PROXY_HEADER_ENCODED_BYTES];
    const struct proxy_header_conf *conf = _i == 0 ? &proxy_headers.v1 : &proxy_headers.v2;
    size_t len = proxy_headers_encode(data, conf, "192.0.2.1:56324", "198.51.100.1:443", NULL);
    struct proxy_header h;

    for (size_t at = 0; at < len; at++) {
        uint8_t was = data[at];

        for (unsigned value = 0; value < 256; value++) {
            data[at] = (uint8_t)value;
            if (proxy_header_decode(&h, data, len) < 0 || h.local)
                continue;
            ck_assert_uint_eq(
                proxy_headers_encode_addresses(again, conf, &h.source, &h.destination, NULL), len);
            ck_assert_mem_eq(again, data, len);
        }
        data[at] = was;
    }
}

/* The first or the second one is right, so that only their number can be wrong. */
TEST_EACH(TLVs, second_checksum_is_refused, 2)
{
    uint8_t data[] = MARK "\x21\x11\0\x1a" HOSTS "\3\0\4\0\0\0\0\3\0\4\0\0\0\0";
    size_t value = _i == 0 ? 31 : 38;
    uint32_t crc = crc32c_add(0, data, sizeof(data) - 1);
    struct proxy_header h;

    for (unsigned i = 0; i < 4; i++)
        data[value + i] = (uint8_t)(crc >> (24 - 8 * i));
    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data) - 1), -EPROTO);
    data[_i == 0 ? 35 : 28] = 0x04; /* one of them is a NOOP: the other counts */
    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data) - 1), -EPROTO);
    for (unsigned i = 0; i < 4; i++)
        data[value + i] = 0;
    crc = crc32c_add(0, data, sizeof(data) - 1);
    for (unsigned i = 0; i < 4; i++)
        data[value + i] = (uint8_t)(crc >> (24 - 8 * i));
    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data) - 1), sizeof(data) - 1);
}

TEST(TLVs, the_longest_header_that_is_taken_is_taken)
{
    static uint8_t data[PROXY_HEADER_MAX_BYTES] = MARK "\x21\x11\x0f\xf0" HOSTS "\4\x0f\xe1";
    struct proxy_header h;

    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data) - 1), -EAGAIN);
    ck_assert_int_eq(proxy_header_decode(&h, data, sizeof(data)), sizeof(data));
}
