/* limits/ban_table: who is banned, until when, and what a full table forgets. */
#include <arpa/inet.h>

#include "base/clock.h"
#include "limits/ban_table.h"
#include "net/address.h"
#include "support/fault.h"
#include "support/sockets.h"
#include "support/suite.h"

static struct ban_table *t;
static struct ban_table_conf conf;
static struct ban_judgement judgement;
static int64_t now_ns;

static void setup(void)
{
    now_ns = 1000 * NS_PER_S;
    conf = (struct ban_table_conf){
        .max_clients = 16,
        .name = {.prefix_v4 = 32, .prefix_v6 = 64},
        .ban = {.offences = 3, .window_ns = 8 * NS_PER_S, .ban_ns = 60 * NS_PER_S}};
    t = NULL;
}

static void create(void)
{
    ck_assert_int_eq(ban_table_create(&t, &conf), 0);
}

static void teardown(void)
{
    ban_table_release(t);
}

static struct address numbered(uint32_t n)
{
    struct address a = {.len = sizeof(a.u.in)};

    a.u.in.sin_family = AF_INET;
    a.u.in.sin_addr.s_addr = htonl(n);
    return a;
}

/* Is ${a} banned by this offence? */
static bool offend(const struct address *a)
{
    ban_table_offend(t, a, BAN_OFFENCE_DENIED, now_ns, &judgement);
    return judgement.is_banned;
}

static bool offend_often(const struct address *a)
{
    for (unsigned i = 1; i < conf.ban.offences; i++)
        if (offend(a))
            return false;
    return offend(a);
}

GROUP(ban_table, setup, teardown);

TEST(ban_table, client_is_banned_by_its_last_offence_and_for_the_time)
{
    struct address a = sockets_address("192.0.2.1:1"), other = sockets_address("192.0.2.2:1");
    char text[BAN_TEXT_BYTES];

    create();
    ck_assert(!offend(&a));
    ck_assert(!offend(&a));
    ck_assert(!ban_table_has_bans(t));
    ck_assert(!ban_table_refuses(t, &a, now_ns));
    ck_assert(offend(&a));
    ck_assert_str_eq(ban_text(&judgement.ban, text), "192.0.2.1");
    ck_assert_str_eq(ban_offence_word(judgement.ban.offence), "denied");
    ck_assert_int_eq(judgement.ban.until_ns, now_ns + 60 * NS_PER_S);
    ck_assert(ban_table_has_bans(t));
    ck_assert(ban_table_refuses(t, &a, now_ns));
    ck_assert(!ban_table_refuses(t, &other, now_ns));
    ck_assert(ban_table_refuses(t, &a, now_ns + 60 * NS_PER_S - 1));
    ck_assert(!ban_table_refuses(t, &a, now_ns + 60 * NS_PER_S));
    ck_assert(!ban_table_has_bans(t));
}

TEST(ban_table, offences_of_a_banned_client_do_not_count)
{
    struct address a = sockets_address("192.0.2.1:1");

    create();
    ck_assert(offend_often(&a));
    for (int i = 0; i < 10; i++) {
        ck_assert(!offend(&a));
        ck_assert(!judgement.is_counted);
    }
    now_ns += 60 * NS_PER_S;
    ck_assert(!offend(&a));
    ck_assert(judgement.is_counted);
    ck_assert(!offend(&a));
    ck_assert(offend(&a));
}

/* Three offences, the last ${ms} after the first. */
static const struct {
    int64_t ms;
    bool banned;
} spans[] = {{6900, true}, {7000, true}, {8000, false}, {9000, false}, {900000, false}};

TEST_EACH(ban_table, offences_count_within_the_window_only, ARRAY_LEN(spans))
{
    struct address a = sockets_address("192.0.2.1:1");

    create();
    ck_assert(!offend(&a));
    ck_assert(!offend(&a));
    now_ns += spans[_i].ms * NS_PER_MS;
    ck_assert_int_eq(offend(&a), spans[_i].banned);
}

TEST(ban_table, time_that_runs_backwards_between_threads_does_no_harm)
{
    struct address a = sockets_address("192.0.2.1:1");

    create();
    ck_assert(!offend(&a));
    now_ns -= 5 * NS_PER_S;
    ck_assert(!offend(&a));
    now_ns += 5 * NS_PER_S;
    ck_assert(offend(&a));
}

/* Is the second client the first one, and which text has its ban? */
static const struct {
    const char *one, *other, *text;
    bool same;
} pairs[] = {{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.1", true},
             {"[2001:db8::1]:1", "[2001:db8::ffff:2]:1", "2001:db8::/64", true},
             {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", "2001:db8::/64", false},
             {"[::ffff:192.0.2.1]:1", "192.0.2.1:1", "192.0.2.1", true}};

TEST_EACH(ban_table, an_ipv6_client_is_its_network, ARRAY_LEN(pairs))
{
    struct address one = sockets_address(pairs[_i].one), other = sockets_address(pairs[_i].other);
    char text[BAN_TEXT_BYTES];

    create();
    ck_assert(offend_often(&one));
    ck_assert_str_eq(ban_text(&judgement.ban, text), pairs[_i].text);
    ck_assert_int_eq(ban_table_refuses(t, &other, now_ns), pairs[_i].same);
}

TEST(ban_table, a_link_local_client_is_its_address_and_interface)
{
    struct address a = sockets_address("[fe80::1]:1"), other = a;
    char text[BAN_TEXT_BYTES];

    a.u.in6.sin6_scope_id = 2;
    other.u.in6.sin6_scope_id = 3;
    create();
    ck_assert(offend_often(&a));
    ck_assert_str_eq(ban_text(&judgement.ban, text), "fe80::1%2");
    ck_assert(!ban_table_refuses(t, &other, now_ns));
    ck_assert(ban_table_refuses(t, &a, now_ns));
}

TEST(ban_table, a_unix_socket_is_never_banned)
{
    struct address a = sockets_address("/run/x.sock");

    create();
    ck_assert(!offend_often(&a));
    ck_assert(!ban_table_refuses(t, &a, now_ns));
}

/* No ck_assert(), a system call: called a million times. */
TEST(ban_table, a_million_offenders_evict_no_ban)
{
    struct address banned = sockets_address("192.0.2.1:1");
    unsigned forgotten = 0;

    create();
    ck_assert(offend_often(&banned));
    for (uint32_t i = 0; i < 1000000; i++) {
        struct address a = numbered(0x0a000000 + i);

        if (offend(&a) || judgement.forgot_ban)
            ck_abort_msg("one offence bans, or evicts a ban");
        forgotten += judgement.forgot_offender;
    }
    ck_assert_uint_eq(forgotten, 1000000 - 15);
    ck_assert(ban_table_refuses(t, &banned, now_ns));
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 1);
}

TEST(ban_table, bans_leave_an_eighth_of_the_table_to_offenders)
{
    struct address first = numbered(1);

    create();
    for (uint32_t i = 1; i <= 14; i++) {
        struct address a = numbered(i);

        ck_assert(offend_often(&a));
        ck_assert(!judgement.forgot_ban);
        now_ns += NS_PER_MS;
    }
    for (uint32_t i = 15; i <= 16; i++) {
        struct address a = numbered(i);

        ck_assert(offend_often(&a));
        ck_assert(judgement.forgot_ban);
    }
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 14);
    ck_assert(!ban_table_refuses(t, &first, now_ns)); /* the oldest has ended */
}

TEST(ban_table, a_table_of_one_entry_works)
{
    struct address a = numbered(1), other = numbered(2);

    conf.max_clients = 1;
    create();
    ck_assert(offend_often(&a));
    ck_assert(!offend_often(&other)); /* no entry is left */
    ck_assert(ban_table_refuses(t, &a, now_ns));
    now_ns += 60 * NS_PER_S;
    ck_assert(offend_often(&other));
}

static void count_one(void *cookie, const struct ban *ban)
{
    unsigned *n = cookie;

    *n += ban->refused + 1;
}

TEST(ban_table, bans_are_visited_with_their_refused_connections)
{
    struct address a = numbered(1), b = numbered(2);
    unsigned n = 0;

    create();
    ck_assert(offend_often(&a));
    ck_assert(offend_often(&b));
    ck_assert(ban_table_refuses(t, &a, now_ns));
    ban_table_each(t, now_ns, count_one, &n);
    ck_assert_uint_eq(n, 3);
    n = 0;
    ban_table_each(t, now_ns + 60 * NS_PER_S, count_one, &n);
    ck_assert_uint_eq(n, 0);
}

/* Bans of 10.0.0.1, 10.0.0.2 and 2001:db8::/64 that a block lifts. */
static const struct {
    const char *block; /* NULL: all */
    unsigned n;
} lifts[] = {{NULL, 3},           {"10.0.0.1", 1},      {"10.0.0.0/8", 2},  {"192.0.2.1", 0},
             {"2001:db8::17", 1}, {"2001:db8::/32", 1}, {"2001:db9::1", 0}, {"2001:db8::/64", 1}};

TEST_EACH(ban_table, a_block_lifts_the_bans_that_it_touches, ARRAY_LEN(lifts))
{
    struct address list[] = {sockets_address("10.0.0.1:1"), sockets_address("10.0.0.2:1"),
                             sockets_address("[2001:db8::1]:1")};
    struct cidr block;

    create();
    for (unsigned i = 0; i < ARRAY_LEN(list); i++)
        ck_assert(offend_often(&list[i]));
    if (lifts[_i].block)
        ck_assert_int_eq(cidr_parse(&block, lifts[_i].block), 0);
    ck_assert_uint_eq(ban_table_lift(t, lifts[_i].block ? &block : NULL, now_ns), lifts[_i].n);
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 3 - lifts[_i].n);
    ck_assert_uint_eq(ban_table_lift(t, NULL, now_ns), 3 - lifts[_i].n);
    ck_assert(!ban_table_has_bans(t));
    ck_assert(offend_often(&list[0])); /* counted afresh */
}

/* 0: another size; 1: other bits of IPv4. */
TEST_EACH(ban_table, bans_move_to_another_table_unless_its_prefix_differs, 2)
{
    struct address a = numbered(1), b = sockets_address("[2001:db8::1]:1");
    struct ban_losses lost = {.prefix = 0};
    struct ban_table *before;

    create();
    ck_assert(offend_often(&a));
    ck_assert(offend_often(&b));
    ck_assert(ban_table_refuses(t, &b, now_ns));
    before = t;
    if (_i == 0)
        conf.max_clients = 4;
    else
        conf.name.prefix_v4 = 24;
    ck_assert(!ban_table_fits(before, &conf));
    create();
    ban_table_copy(t, before, now_ns, &lost);
    ck_assert_uint_eq(lost.prefix, _i);
    ck_assert_uint_eq(lost.full + lost.ended, 0);
    ban_table_release(before);
    ck_assert_int_eq(ban_table_refuses(t, &a, now_ns), _i == 0);
    ck_assert(ban_table_refuses(t, &b, now_ns));
    ck_assert(!ban_table_refuses(t, &b, now_ns + 60 * NS_PER_S));
}

TEST(ban_table, another_window_forgets_offences_and_keeps_bans)
{
    struct address a = numbered(1), b = numbered(2);

    create();
    ck_assert(offend_often(&a));
    ck_assert(!offend(&b));
    ck_assert(!offend(&b));
    conf.ban.window_ns = 16 * NS_PER_S;
    conf.ban.ban_ns = NS_PER_S;
    ck_assert(ban_table_fits(t, &conf));
    ban_table_set(t, &conf.ban);
    ck_assert(offend_often(&b));
    now_ns += 2 * NS_PER_S;
    ck_assert(ban_table_refuses(t, &a, now_ns));
    ck_assert(!ban_table_refuses(t, &b, now_ns)); /* behind a ban that ends later */
    ck_assert(offend_often(&b));
}

static void set_ban_time(int64_t ban_ns)
{
    conf.ban.ban_ns = ban_ns;
    ban_table_set(t, &conf.ban);
}

/* As after a reload with a shorter `ban`: the bans do not end in the order in which they began. */
TEST(ban_table, bans_that_have_ended_are_not_counted_and_evict_none_in_force)
{
    struct address longest = numbered(1), a;

    create();
    ck_assert(offend_often(&longest));
    set_ban_time(NS_PER_S);
    for (uint32_t i = 2; i <= 14; i++) {
        a = numbered(i);
        ck_assert(offend_often(&a));
    }
    now_ns += 2 * NS_PER_S;
    a = numbered(15);
    ck_assert(offend_often(&a));
    ck_assert(!judgement.forgot_ban);
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 2);
    for (uint32_t i = 16; i <= 27; i++) {
        a = numbered(i);
        ck_assert(offend_often(&a));
        ck_assert(!judgement.forgot_ban);
    }
    a = numbered(28);
    ck_assert(offend_often(&a)); /* above seven eighths */
    ck_assert(judgement.forgot_ban);
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 14);
    ck_assert(ban_table_refuses(t, &longest, now_ns));
    ck_assert(ban_table_refuses(t, &a, now_ns));
}

/* Fill a table of 1000 with bans of clients 1 to 800; the later ones are the longer ones. */
static void create_filled(void)
{
    conf.max_clients = 1000;
    create();
    for (uint32_t i = 1; i <= 800; i++) {
        struct address a = numbered(i);

        now_ns += NS_PER_MS;
        ck_assert(offend_often(&a));
    }
}

TEST(ban_table, a_smaller_table_takes_the_bans_that_end_last_and_tells_how_many_it_lost)
{
    struct address shorter = numbered(800 - 14), longer = numbered(800 - 13);
    struct ban_losses lost = {.full = 0};
    struct ban_table *before;

    create_filled();
    before = t;
    conf.max_clients = 16;
    create();
    ban_table_copy(t, before, now_ns, &lost);
    ban_table_release(before);
    ck_assert_uint_eq(lost.full, 800 - 14);
    ck_assert_uint_eq(lost.prefix + lost.ended, 0);
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 14);
    ck_assert(!ban_table_refuses(t, &shorter, now_ns));
    ck_assert(ban_table_refuses(t, &longer, now_ns));
}

/* Uses the table, so it is not locked. */
static void visit_and_look(void *cookie, const struct ban *ban)
{
    unsigned *visits = cookie;

    visits[256 * ban->block.host[2] + ban->block.host[3]]++;
    if (ban_table_bans(t, now_ns) == 0)
        ck_abort_msg("no bans");
}

TEST(ban_table, many_bans_are_visited_once_each_and_without_the_lock)
{
    unsigned visits[1000] = {0};

    create_filled();
    ban_table_each(t, now_ns, visit_and_look, visits);
    for (unsigned i = 1; i <= 800; i++)
        ck_assert_uint_eq(visits[i], 1);
    ck_assert_uint_eq(ban_table_lift(t, NULL, now_ns), 800);
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 0);
}

TEST(ban_table, of_two_bans_of_one_client_the_longer_one_stays)
{
    struct address a = numbered(1);
    struct ban_losses lost = {.full = 0};
    struct ban other;

    create();
    ck_assert(offend_often(&a));
    other = judgement.ban;
    other.until_ns -= 30 * NS_PER_S;
    ban_table_add(t, &other, 1, now_ns, &lost);
    ck_assert(ban_table_refuses(t, &a, now_ns + 59 * NS_PER_S));
    other.until_ns += 60 * NS_PER_S;
    ban_table_add(t, &other, 1, now_ns, &lost);
    ck_assert(ban_table_refuses(t, &a, now_ns + 89 * NS_PER_S));
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 1);
    ban_table_add(t, &other, 1, now_ns + 90 * NS_PER_S, &lost);
    ck_assert_uint_eq(lost.ended, 1);
    ck_assert_uint_eq(lost.full + lost.prefix, 0);
}

static int attempt(void *cookie)
{
    struct ban_table *other;
    int rc = ban_table_create(&other, cookie);

    if (rc == 0)
        ban_table_release(other);
    return rc;
}

TEST(ban_table, lack_of_memory_is_an_error)
{
    ck_assert_uint_eq(fault_each_allocation(attempt, &conf), 4);
}
