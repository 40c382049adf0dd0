/* limits/prefix_table: it answers as going through the list does, whatever nests in what. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "limits/prefix_table.h"
#include "net/address.h"
#include "net/cidr.h"
#include "support/sanitized.h"
#include "support/suite.h"

#define MAX_BLOCKS 4096

static struct cidr blocks[MAX_BLOCKS];
static uint32_t by[MAX_BLOCKS];
static size_t n_blocks;
static struct prefix_table *table;
static uint64_t state;

static void setup(void)
{
    n_blocks = 0;
    table = NULL;
    state = 0;
}

static void teardown(void)
{
    prefix_table_destroy(table);
}

static uint64_t draw(void)
{
    return hash_mix(state++);
}

static void add(const char *word)
{
    ck_assert_msg(cidr_parse(&blocks[n_blocks++], word) == 0, "%s", word);
}

static void make(void)
{
    prefix_table_destroy(table);
    ck_assert_int_eq(prefix_table_create(&table, blocks, n_blocks), 0);
}

static struct address host(const uint8_t *bytes, size_t len)
{
    struct address a = {.len = len == 4 ? sizeof(a.u.in) : sizeof(a.u.in6)};

    a.u.sa.sa_family = len == 4 ? AF_INET : AF_INET6;
    memcpy(len == 4 ? (void *)&a.u.in.sin_addr : (void *)&a.u.in6.sin6_addr, bytes, len);
    return a;
}

static uint32_t find(const char *word)
{
    struct cidr c;
    struct address a;

    ck_assert_int_eq(cidr_parse(&c, word), 0);
    if (c.len == 0)
        a = (struct address){.len = sizeof(sa_family_t), .u.sa.sa_family = AF_UNIX};
    else
        a = host(c.host, c.len);
    return prefix_table_find(table, &a);
}

/* The model. */
static uint32_t slowly(const struct address *a)
{
    for (size_t i = 0; i < n_blocks; i++)
        if (cidr_has(&blocks[i], a))
            return (uint32_t)i;
    return PREFIX_TABLE_NONE;
}

static void agrees(const uint8_t *bytes, size_t len)
{
    struct address a = host(bytes, len);
    char text[ADDRESS_TEXT_BYTES];

    ck_assert_msg(prefix_table_find(table, &a) == slowly(&a), "%s: %u and not %u",
                  address_format(text, sizeof(text), &a), prefix_table_find(table, &a), slowly(&a));
}

/* The first and the last host of a block, and those beside it. */
static void agrees_around(const struct cidr *c)
{
    uint8_t first[16], last[16];

    memcpy(first, c->host, sizeof(first));
    memcpy(last, c->host, sizeof(last));
    for (unsigned bit = c->bits; bit < 8U * c->len; bit++)
        last[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    agrees(first, c->len);
    agrees(last, c->len);
    for (int i = c->len - 1; i >= 0 && first[i]-- == 0; i--)
        ;
    for (int i = c->len - 1; i >= 0 && ++last[i] == 0; i--)
        ;
    agrees(first, c->len);
    agrees(last, c->len);
}

static void agrees_everywhere(void)
{
    make();
    for (size_t i = 0; i < n_blocks; i++)
        if (blocks[i].len > 0)
            agrees_around(&blocks[i]);
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t bytes[2] = {draw(), draw()};

        agrees((const uint8_t *)bytes, i % 2 == 0 ? 4 : 16);
    }
}

/* A block of ${len} bytes whose first bits are one of few values, so that many nest. */
static struct cidr draw_block(uint8_t len, unsigned spread)
{
    struct cidr c = {.len = len, .bits = (uint8_t)(draw() % (8U * len + 1))};
    struct cidr cut;
    char text[CIDR_TEXT_BYTES];
    int rc;

    for (unsigned i = 0; i < len; i++)
        c.host[i] = (uint8_t)(draw() % spread * (256 / spread));
    rc = cidr_parse(&cut, cidr_format(text, sizeof(text), &c));
    ck_assert(rc == 0 || rc == -EDOM);
    return cut;
}

GROUP(find, setup, teardown);

TEST(find, empty_table_matches_no_address)
{
    make();
    ck_assert_uint_eq(find("0.0.0.0"), PREFIX_TABLE_NONE);
    ck_assert_uint_eq(find("255.255.255.255"), PREFIX_TABLE_NONE);
    ck_assert_uint_eq(find("::"), PREFIX_TABLE_NONE);
    ck_assert_uint_eq(find("unix"), PREFIX_TABLE_NONE);
}

TEST(find, first_covering_block_wins_and_not_the_longest)
{
    add("10.1.0.0/16");
    add("10.0.0.0/8");
    add("10.1.2.0/24");
    add("10.2.0.0/16");
    add("0.0.0.0/0");
    agrees_everywhere();
    ck_assert_uint_eq(find("10.1.2.3"), 0);
    ck_assert_uint_eq(find("10.2.0.1"), 1);
    ck_assert_uint_eq(find("9.255.255.255"), 4);
    ck_assert_uint_eq(find("::1"), PREFIX_TABLE_NONE);
}

TEST(find, families_do_not_meet)
{
    add("::/0");
    add("0.0.0.0/0");
    add("unix");
    add("unix");
    agrees_everywhere();
    ck_assert_uint_eq(find("::"), 0);
    ck_assert_uint_eq(find("::ffff:1.2.3.4"), 1); /* is IPv4 */
    ck_assert_uint_eq(find("1.2.3.4"), 1);
    ck_assert_uint_eq(find("unix"), 2);
}

TEST(find, the_ends_of_all_addresses_are_reached)
{
    add("255.255.255.255");
    add("0.0.0.0");
    add("255.255.255.254/31");
    add("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    add("::/127");
    add("ffff::/16");
    agrees_everywhere();
}

static void add_nested(bool inner_first, uint8_t len, uint8_t fill)
{
    unsigned deepest = 8U * len;

    for (unsigned i = 0; i <= deepest; i++) {
        struct cidr c = {.len = len, .bits = (uint8_t)(inner_first ? deepest - i : i)};

        for (unsigned bit = 0; bit < c.bits; bit++)
            c.host[bit / 8] |= (uint8_t)(fill & 0x80 >> bit % 8);
        blocks[n_blocks++] = c;
    }
}

TEST(find, as_deep_as_blocks_can_nest)
{
    static const uint8_t fills[] = {0x00, 0xff, 0x55, 0xaa};

    for (unsigned i = 0; i < 4; i++) {
        n_blocks = 0;
        add_nested(true, 4, fills[i]);
        add_nested(false, 16, fills[i]);
        agrees_everywhere();
        n_blocks = 0;
        add_nested(false, 4, fills[i]);
        add_nested(true, 16, fills[i]);
        agrees_everywhere();
    }
}

TEST(find, address_in_equal_blocks_matches_the_first_block)
{
    for (unsigned i = 0; i < 1000; i++)
        add(i % 3 == 0 ? "10.0.0.0/8" : "10.0.0.0/9");
    agrees_everywhere();
    ck_assert_uint_eq(find("10.0.0.1"), 0);
    ck_assert_uint_eq(find("10.200.0.1"), 0);
}

/* Spread 2 nests nearly everything, 256 hardly anything. */
TEST(find, random_lists_match_as_a_linear_search_does)
{
    static const unsigned spreads[] = {2, 4, 16, 256};

    for (unsigned round = 0; round < 40; round += IF_SANITIZED(3, 1)) {
        state = (uint64_t)round << 32;
        n_blocks = 0;
        while (n_blocks < (round < 36 ? 60 : 1500)) {
            blocks[n_blocks] = draw_block(draw() % 2 == 0 ? 4 : 16, spreads[round % 4]);
            n_blocks++;
        }
        agrees_everywhere();
    }
}

static bool covers(const struct cidr *outer, const struct cidr *inner)
{
    struct address a;

    if (outer->len != inner->len || outer->bits > inner->bits)
        return false;
    if (inner->len == 0)
        return true;
    a = host(inner->host, inner->len);
    return cidr_has(outer, &a);
}

TEST(find, first_covering_block_of_each_block_is_found)
{
    for (unsigned round = 0; round < 20; round += IF_SANITIZED(4, 1)) {
        state = (uint64_t)round << 32;
        for (n_blocks = 0; n_blocks < 300; n_blocks++)
            blocks[n_blocks] = draw_block(draw() % 2 == 0 ? 4 : 16, 2U << round % 3);
        add("unix");
        add("unix");
        ck_assert_int_eq(prefix_table_covers(by, blocks, n_blocks), 0);
        for (size_t i = 0; i < n_blocks; i++) {
            size_t first = 0;

            while (!covers(&blocks[first], &blocks[i]))
                first++;
            if (by[i] != first)
                ck_abort_msg("block %zu: %u covers it, not %zu", i, by[i], first);
        }
    }
}
