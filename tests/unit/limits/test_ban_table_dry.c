/* limits/ban_table: bans of a dry run, and what its end leaves. */
#include <arpa/inet.h>

#include "base/clock.h"
#include "limits/ban_table.h"
#include "net/address.h"
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

GROUP(ban_table_dry, setup, teardown);

TEST(ban_table_dry, of_two_bans_of_one_client_the_real_one_stays)
{
    struct address a = numbered(1);
    struct ban_losses lost = {.full = 0};
    struct ban dry;

    create();
    conf.ban.is_dry = true;
    (void)ban_table_set(t, &conf.ban);
    ck_assert(offend_often(&a));
    dry = judgement.ban;
    for (int i = 0; i < 2; i++) {
        struct ban real = dry;

        real.is_dry = false;
        real.until_ns -= 30 * NS_PER_S;
        ban_table_add(t, &real, 1, now_ns, &lost);
        ban_table_add(t, &dry, 1, now_ns, &lost);
        ck_assert_uint_eq(ban_table_bans(t, now_ns), 1);
    }
    conf.ban.is_dry = false;
    ck_assert_uint_eq(ban_table_set(t, &conf.ban), 0);
    ck_assert(ban_table_refuses(t, &a, now_ns + 29 * NS_PER_S));
    ck_assert(!ban_table_refuses(t, &a, now_ns + 30 * NS_PER_S));
    ck_assert_uint_eq(lost.full + lost.prefix + lost.dry + lost.ended, 0);
}

static void see_dry(void *cookie, const struct ban *ban)
{
    unsigned *n = cookie;

    n[ban->is_dry]++;
}

TEST(ban_table_dry, end_of_a_dry_run_ends_its_bans_and_forgets_its_offences)
{
    struct address a = numbered(1), b = numbered(2), c = numbered(3);
    unsigned n[2] = {0};

    create();
    ck_assert(offend_often(&a));
    conf.ban.is_dry = true;
    ck_assert_uint_eq(ban_table_set(t, &conf.ban), 0);
    ck_assert(offend_often(&b));
    ck_assert(!offend(&c));
    ck_assert(!offend(&c));
    ban_table_each(t, now_ns, see_dry, n);
    ck_assert_uint_eq(n[false], 1);
    ck_assert_uint_eq(n[true], 1);
    conf.ban.is_dry = false;
    ck_assert_uint_eq(ban_table_set(t, &conf.ban), 1);
    ck_assert(ban_table_refuses(t, &a, now_ns));
    ck_assert(!ban_table_refuses(t, &b, now_ns));
    ck_assert(!offend(&c)); /* the first one that counts */
    ck_assert(offend_often(&b));
    ck_assert_uint_eq(ban_table_bans(t, now_ns), 2);
}

/* To a table that 0: is not dry; 1: is dry, too. */
TEST_EACH(ban_table_dry, ban_of_a_dry_run_is_added_to_a_dry_table_only, 2)
{
    struct address a = numbered(1);
    struct ban_losses lost = {.ended = 0};
    struct ban_table *before;
    unsigned n[2] = {0};

    conf.ban.is_dry = true;
    create();
    ck_assert(offend_often(&a));
    before = t;
    conf.ban.is_dry = _i == 1;
    create();
    ban_table_copy(t, before, now_ns, &lost);
    ck_assert_uint_eq(lost.dry, _i == 0);
    ck_assert_uint_eq(lost.ended + lost.prefix + lost.full, 0);
    ban_table_release(before);
    ban_table_each(t, now_ns, see_dry, n);
    ck_assert_uint_eq(n[true], (unsigned)_i);
    ck_assert_uint_eq(n[false], 0);
}
