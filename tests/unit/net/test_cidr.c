/* net/cidr: what is a block, what is none, and who is in it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/address.h"
#include "net/cidr.h"
#include "support/sockets.h"
#include "support/suite.h"

static struct cidr block(const char *word)
{
    struct cidr c;

    ck_assert_msg(cidr_parse(&c, word) == 0, "%s", word);
    return c;
}

static const struct {
    const char *word;
    const char *text;
} good[] = {
    {"10.0.0.0/8", "10.0.0.0/8"},
    {"0.0.0.0/0", "0.0.0.0/0"},
    {"10.1.2.3", "10.1.2.3/32"},
    {"10.1.2.3/32", "10.1.2.3/32"},
    {"10.1.2.2/31", "10.1.2.2/31"},
    {"128.0.0.0/1", "128.0.0.0/1"},
    {"192.168.128.0/17", "192.168.128.0/17"},
    {"::/0", "::/0"},
    {"::1", "::1/128"},
    {"::1/128", "::1/128"},
    {"2001:DB8::/32", "2001:db8::/32"},
    {"2001:db8:8000::/33", "2001:db8:8000::/33"},
    {"fe80::/10", "fe80::/10"},
    {"::ffff:10.0.0.0/104", "10.0.0.0/8"},
    {"::ffff:10.1.2.3", "10.1.2.3/32"},
    {"::ffff:0:0/96", "0.0.0.0/0"},
    {"unix", "unix"},
};

GROUP(words, NULL, NULL);

TEST_EACH(words, parsed_block_is_formatted_in_canonical_form, ARRAY_LEN(good))
{
    struct cidr c = block(good[_i].word), again;
    char text[CIDR_TEXT_BYTES];

    ck_assert_str_eq(cidr_format(text, sizeof(text), &c), good[_i].text);
    again = block(text);
    ck_assert_mem_eq(&c, &again, sizeof(c));
}

static const struct {
    const char *word;
    int rc;
} bad[] = {
    {"", -EINVAL},
    {"/", -EINVAL},
    {"/8", -EINVAL},
    {"10.0.0.0/", -EINVAL},
    {"10.0.0.0/x", -EINVAL},
    {"10.0.0.0/8 ", -EINVAL},
    {" 10.0.0.0/8", -EINVAL},
    {"10.0.0.0/08", -EINVAL},
    {"10.0.0.0/+8", -EINVAL},
    {"10.0.0.0/8/8", -EINVAL},
    {"10.0.0.0/255.0.0.0", -EINVAL},
    {"10.0.0.0/33", -ERANGE},
    {"10.0.0.0/99999999999999999999999", -ERANGE},
    {"10/8", -EINVAL},
    {"010.0.0.0/8", -EINVAL},
    {"10.0.0.0:80", -EINVAL},
    {"[::1]", -EINVAL},
    {"::1/129", -ERANGE},
    {"fe80::1%lo", -EINVAL},
    {"fe80::%lo/64", -EINVAL},
    {"localhost", -EINVAL},
    {"/run/x.sock", -EINVAL},
    {"@x", -EINVAL},
    {"Unix", -EINVAL},
    {"unix/0", -EINVAL},
    {"*", -EINVAL},
    {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/0", -EINVAL},
};

TEST_EACH(words, text_that_is_no_block_is_refused, ARRAY_LEN(bad))
{
    struct cidr c;

    memset(&c, 0x55, sizeof(c));
    ck_assert_msg(cidr_parse(&c, bad[_i].word) == bad[_i].rc, "%s", bad[_i].word);
    for (size_t i = 0; i < sizeof(c); i++)
        ck_assert_uint_eq(((unsigned char *)&c)[i], 0x55);
}

static const struct {
    const char *word;
    const char *meant;
} loose[] = {
    {"10.0.0.1/8", "10.0.0.0/8"},
    {"10.128.0.0/8", "10.0.0.0/8"},
    {"1.2.3.4/0", "0.0.0.0/0"},
    {"10.1.2.3/31", "10.1.2.2/31"},
    {"::1/0", "::/0"},
    {"2001:db8::1/32", "2001:db8::/32"},
    {"::ffff:10.0.0.1/104", "10.0.0.0/8"},
    {"::ffff:10.0.0.0/95", "::fffe:0:0/95"},
};

TEST_EACH(words, bits_behind_the_prefix_are_refused_with_the_intended_block, ARRAY_LEN(loose))
{
    struct cidr c;
    char text[CIDR_TEXT_BYTES];

    ck_assert_int_eq(cidr_parse(&c, loose[_i].word), -EDOM);
    ck_assert_str_eq(cidr_format(text, sizeof(text), &c), loose[_i].meant);
}

static const struct {
    const char *block;
    const char *host;
    bool in;
} members[] = {
    {"10.0.0.0/8", "10.0.0.0:1", true},
    {"10.0.0.0/8", "10.255.255.255:65535", true},
    {"10.0.0.0/8", "11.0.0.0:1", false},
    {"10.0.0.0/8", "9.255.255.255:1", false},
    {"10.0.0.0/9", "10.127.255.255:1", true},
    {"10.0.0.0/9", "10.128.0.0:1", false},
    {"10.1.2.3", "10.1.2.3:7", true},
    {"10.1.2.3", "10.1.2.2:7", false},
    {"0.0.0.0/0", "255.255.255.255:1", true},
    {"0.0.0.0/0", "[::1]:1", false},
    {"0.0.0.0/0", "[::ffff:1.2.3.4]:1", true},
    {"10.0.0.0/8", "[::ffff:10.1.2.3]:1", true},
    {"::ffff:10.0.0.0/104", "10.1.2.3:1", true},
    {"::/0", "[::1]:1", true},
    {"::/0", "10.0.0.1:1", false},
    {"::/0", "[::ffff:10.0.0.1]:1", false},
    {"2001:db8::/33", "[2001:db8:7fff::1]:1", true},
    {"2001:db8::/33", "[2001:db8:8000::1]:1", false},
    {"fe80::/10", "[fe80::1%lo]:1", true},
    {"::1", "[::1]:1", true},
    {"::1", "[::2]:1", false},
    {"::/0", "/run/x.sock", false},
    {"0.0.0.0/0", "@x", false},
    {"unix", "/run/x.sock", true},
    {"unix", "@x", true},
    {"unix", "127.0.0.1:1", false},
    {"unix", "[::1]:1", false},
};

GROUP(members, NULL, NULL);

TEST_EACH(members, a_block_has_the_hosts_that_share_its_prefix, ARRAY_LEN(members))
{
    struct cidr c = block(members[_i].block);
    struct address a = sockets_address(members[_i].host);

    ck_assert_msg(cidr_has(&c, &a) == members[_i].in, "%s in %s", members[_i].host,
                  members[_i].block);
}

/* As accept(2) gives it on a socket of both families, and not as address_parse() writes it. */
TEST(members, mapped_ipv4_address_matches_ipv4_blocks_only)
{
    struct cidr in4 = block("10.0.0.0/8"), in6 = block("::/0");
    struct address a = sockets_address("[::1]:7");

    memcpy(a.u.in6.sin6_addr.s6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\3", 16);
    ck_assert(cidr_has(&in4, &a));
    ck_assert(!cidr_has(&in6, &a));
}

TEST(members, unnamed_unix_peer_matches_the_block_unix)
{
    struct cidr c = block("unix"), in4 = block("0.0.0.0/0");
    struct address a = {.len = sizeof(sa_family_t), .u.sa.sa_family = AF_UNIX};

    ck_assert(cidr_has(&c, &a));
    ck_assert(!cidr_has(&in4, &a));
}

TEST(members, list_matches_an_address_that_any_of_its_blocks_contains)
{
    struct cidr list[] = {block("10.0.0.0/8"), block("::1"), block("unix")};
    struct address a = sockets_address("127.0.0.1:1"), b = sockets_address("[::1]:1"),
                   c = sockets_address("@x");

    ck_assert(!cidr_any_has(list, 3, &a));
    ck_assert(cidr_any_has(list, 3, &b));
    ck_assert(cidr_any_has(list, 3, &c));
    ck_assert(!cidr_any_has(list, 2, &c));
    ck_assert(!cidr_any_has(NULL, 0, &b));
}

/*
 * Every prefix length, and a bit flipped at every place: outside exactly if it is one of the
 * prefix.
 */
TEST_EACH(members, each_bit_of_the_prefix_is_compared_and_no_bit_behind_it, 2)
{
    struct address a = sockets_address(_i == 0 ? "0.0.0.0:1" : "[2000::]:1");
    uint8_t *bytes = _i == 0 ? (uint8_t *)&a.u.in.sin_addr : a.u.in6.sin6_addr.s6_addr;
    unsigned n = _i == 0 ? 32 : 128;

    for (unsigned bits = 0; bits <= n; bits++) {
        char word[64];
        struct cidr c;

        snprintf(word, sizeof(word), "%s/%u", _i == 0 ? "0.0.0.0" : "2000::", bits);
        ck_assert_int_eq(cidr_parse(&c, word), _i == 1 && bits < 3 ? -EDOM : 0);
        if (_i == 1 && bits < 3)
            continue;
        for (unsigned bit = 0; bit < n; bit++) {
            bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
            ck_assert_msg(cidr_has(&c, &a) == (bit >= bits), "/%u, bit %u", bits, bit);
            bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
        }
    }
}
