/* limits/admission: what becomes of a client, and of its place. */
#include "base/clock.h"
#include "limits/acl.h"
#include "limits/admission.h"
#include "net/address.h"
#include "net/cidr.h"
#include "stats/figure.h"
#include "stats/figure_log.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/suite.h"

static struct admission *ad;
static struct admission_conf conf;
static struct admission_ticket first, second;
static struct address client;
static enum session_reason reason;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    sockets_loopback(&client, 1);
    first = second = (struct admission_ticket){0};
    conf = (struct admission_conf){
        .listener = "front",
        .clients = {.max_clients = 4,
                    .name = {.prefix_v4 = 32, .prefix_v6 = 64},
                    .each = {.max_connections = 1, .rate = {0, NS_PER_S, 1}}}};
}

static void create(void)
{
    ck_assert_int_eq(admission_create(&ad, &conf), 0);
}

static void teardown(void)
{
    admission_leave(&first);
    admission_leave(&second);
    admission_destroy(ad);
}

static enum admission_verdict enter(struct admission_ticket *ticket)
{
    return admission_enter(ad, ticket, &client, &reason);
}

static const struct figure_object listener = {.subject = FIGURE_LISTENER, .name = "front"};

GROUP(admission, setup, teardown);

TEST(admission, without_rules_and_limits_every_client_is_admitted)
{
    conf.clients.each.max_connections = 0;
    create();
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
        ck_assert_int_eq(reason, SESSION_OPEN);
        admission_leave(&first);
    }
    admission_figures(ad, &listener, figure_log());
    ck_assert_uint_eq(log_lines_with("stats"), 0);
}

TEST(admission, leaving_twice_gives_the_connection_back_once)
{
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    ck_assert_int_eq(enter(&second), ADMISSION_RESET);
    admission_leave(&second); /* it has none */
    ck_assert_int_eq(enter(&second), ADMISSION_RESET);
    admission_leave(&first);
    admission_leave(&first);
    ck_assert_int_eq(enter(&second), ADMISSION_ADMIT);
    ck_assert_int_eq(enter(&first), ADMISSION_RESET);
}

static const struct {
    enum quota_over over;
    enum admission_verdict verdict;
} verdicts[] = {{QUOTA_OVER_WAIT, ADMISSION_RESET},
                {QUOTA_OVER_CLOSE, ADMISSION_CLOSE},
                {QUOTA_OVER_RESET, ADMISSION_RESET}};

TEST_EACH(admission, client_above_its_limit_is_refused_as_configured, ARRAY_LEN(verdicts))
{
    conf.over = verdicts[_i].over;
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    ck_assert_int_eq(enter(&second), verdicts[_i].verdict);
    ck_assert_int_eq(reason, SESSION_LIMIT);
    EXPECT_LOG_LINES("listen front: client 127.0.0.1:1: refused: "
                     "max_connections_per_client",
                     1);
    (void)enter(&second);
    EXPECT_LOG_LINES(": refused: ", 1); /* one line in a while */
    admission_figures(ad, &listener, figure_log());
    EXPECT_LOG_LINES("stats listen front clients_known=1", 1);
    EXPECT_LOG_LINES("stats listen front over_max_connections_per_client=2 "
                     "over_connection_rate_per_client=0 uncounted=0 "
                     "forgotten=0",
                     1);
}

TEST(admission, a_rate_without_a_maximum_is_a_limit)
{
    conf.clients.each = (struct quota_conf){.rate = {1, 3600 * NS_PER_S, 1}};
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    admission_leave(&first);
    ck_assert_int_eq(enter(&first), ADMISSION_RESET);
    EXPECT_LOG_LINES("listen front: client 127.0.0.1:1: refused: "
                     "connection_rate_per_client",
                     1);
}

TEST(admission, client_denied_by_a_rule_is_refused_as_configured)
{
    static const bool allow = false;
    static struct cidr block;
    static const struct acl_conf rules = {.blocks = &block, .allow = &allow, .n = 1};

    ck_assert_int_eq(cidr_parse(&block, "127.0.0.0/8"), 0);
    conf.access = &rules;
    conf.on_deny = ADMISSION_CLOSE;
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_CLOSE);
    ck_assert_int_eq(reason, SESSION_LIMIT);
    admission_figures(ad, &listener, figure_log());
    EXPECT_LOG_LINES("stats listen front denied=1", 1);
    EXPECT_LOG_LINES("clients_known=0", 1); /* the limits do not count it */
}

/* ---- bans and dry runs ---- */

static void ban_after(unsigned offences)
{
    conf.ban = (struct ban_conf){
        .offences = offences, .window_ns = 3600 * NS_PER_S, .ban_ns = 3600 * NS_PER_S};
}

TEST(admission, client_refused_too_often_is_banned_and_logged_once)
{
    ban_after(2);
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    ck_assert_int_eq(enter(&second), ADMISSION_RESET);
    ck_assert(!admission_refuses(ad, &client));
    ck_assert_int_eq(enter(&second), ADMISSION_RESET);
    EXPECT_LOG_LINES("listen front: client 127.0.0.1: banned for 3600 s: offences: 2, the last: "
                     "limit",
                     1);
    ck_assert(admission_refuses(ad, &client));
    ck_assert(admission_refuses(ad, &client));
    EXPECT_LOG_LINES(": banned for", 1);
    admission_figures(ad, &listener, figure_log());
    EXPECT_LOG_LINES("stats listen front clients_banned=1", 1);
    EXPECT_LOG_LINES("stats listen front bans=1 refused_banned=2 "
                     "offences_limit=2 offences_denied=0",
                     1);
}

/* Exempt: 0: by ban_exempt; 1: as a proxy of other clients. */
TEST_EACH(admission, exempt_client_is_never_banned, 2)
{
    static struct cidr block;
    static const struct cidr_list exempt = {.list = &block, .n = 1};

    ck_assert_int_eq(cidr_parse(&block, "127.0.0.1"), 0);
    ban_after(1);
    conf.clients.name.prefix_v4 = 8;
    if (_i == 0)
        conf.exempt = &exempt;
    else
        conf.proxies = &exempt;
    create();
    admission_offend(ad, &client, BAN_OFFENCE_TLS);
    ck_assert(!admission_refuses(ad, &client));
    /* Nor by a neighbour in its prefix. */
    client = sockets_address("127.0.0.2:1");
    admission_offend(ad, &client, BAN_OFFENCE_TLS);
    ck_assert(admission_refuses(ad, &client));
    client = sockets_address("127.0.0.1:1");
    ck_assert(!admission_refuses(ad, &client));
}

TEST(admission, dry_run_counts_as_a_real_one_and_serves_all)
{
    ban_after(2);
    conf.over = QUOTA_OVER_LOG;
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    for (int i = 0; i < 5; i++) {
        ck_assert(!admission_refuses(ad, &client));
        ck_assert_int_eq(enter(&second), ADMISSION_ADMIT);
        ck_assert_int_eq(reason, SESSION_OPEN);
        admission_leave(&second);
    }
    EXPECT_LOG_LINES("client 127.0.0.1:1: served, as over_limit = log: max_connections_per_client",
                     1);
    EXPECT_LOG_LINES("banned for 3600 s, but served, as over_limit = log: offences: 2", 1);
    admission_figures(ad, &listener, figure_log());
    EXPECT_LOG_LINES("clients_banned=1", 1);
    EXPECT_LOG_LINES(" bans=1 refused_banned=3 offences_limit=2 ", 1);
    EXPECT_LOG_LINES("over_max_connections_per_client=2 ", 1);
    admission_leave(&first);
    admission_figures(ad, &listener, figure_log());
    EXPECT_LOG_LINES("clients_known=1", 2);
}

/* ---- the next generation ---- */

static void replace(void)
{
    struct admission *before = ad;

    conf.before = before;
    create();
    admission_begin(ad, clock_now_ns());
    admission_carry_over(ad, &first, &client);
    admission_destroy(before);
}

/* 0: other limits; 1: another table; 2: none before. */
TEST_EACH(admission, client_admitted_before_a_change_is_counted_after_it, 3)
{
    if (_i == 2)
        conf.clients.each.max_connections = 0;
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    conf.clients.each.max_connections = 2;
    conf.clients.max_clients = _i == 1 ? 8 : 4;
    replace();
    ck_assert_int_eq(enter(&second), ADMISSION_ADMIT);
    admission_leave(&second);
    conf.clients.each.max_connections = 1;
    replace();
    ck_assert_int_eq(enter(&second), ADMISSION_RESET);
    admission_leave(&first);
    ck_assert_int_eq(enter(&second), ADMISSION_ADMIT);
}

TEST(admission, client_leaves_cleanly_after_the_limits_are_removed)
{
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    conf.clients.each.max_connections = 0;
    replace();
    ck_assert_ptr_null(first.of);
    ck_assert_int_eq(enter(&second), ADMISSION_ADMIT);
}

TEST(admission, counters_continue_after_a_change)
{
    static const struct acl_conf nobody = {.deny_others = true};

    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    ck_assert_int_eq(enter(&second), ADMISSION_RESET);
    conf.access = &nobody;
    replace();
    ck_assert_int_eq(enter(&second), ADMISSION_ADMIT + conf.on_deny);
    conf.access = NULL;
    conf.clients.name.prefix_v4 = 24;
    replace();
    admission_figures(ad, &listener, figure_log());
    EXPECT_LOG_LINES("denied=1", 1);
    EXPECT_LOG_LINES("over_max_connections_per_client=1", 1);
}

/* 0: the same table; 1: another size; 2: another prefix; 3: no bans. */
TEST_EACH(admission, bans_stay_over_a_change_that_does_not_end_them, 4)
{
    ban_after(1);
    conf.clients.each.max_connections = 0;
    create();
    admission_offend(ad, &client, BAN_OFFENCE_TLS);
    if (_i == 1)
        conf.clients.max_clients = 9;
    if (_i == 2)
        conf.clients.name.prefix_v4 = 24;
    if (_i == 3)
        conf.ban.offences = 0;
    replace();
    ck_assert_int_eq(admission_refuses(ad, &client), _i < 2);
    EXPECT_LOG_LINES("listen front: 1 bans ended: ", _i == 2);
}

TEST(admission, bans_that_a_smaller_table_cannot_take_are_logged_and_counted)
{
    ban_after(1);
    create();
    for (int i = 0; i < 3; i++) {
        client.u.in.sin_addr.s_addr = htonl(0x0a000001 + (uint32_t)i);
        admission_offend(ad, &client, BAN_OFFENCE_TLS);
    }
    conf.clients.max_clients = 1;
    replace();
    ck_assert(admission_refuses(ad, &client));
    EXPECT_LOG_LINES("listen front: client_table_size is too small: 2 bans ended", 1);
    admission_figures(ad, &listener, figure_log());
    EXPECT_LOG_LINES("clients_banned=1", 1);
    EXPECT_LOG_LINES("bans_forgotten=2", 1);
}

TEST(admission, bans_of_a_dry_run_end_with_it_and_earlier_ones_go_on)
{
    struct address other = sockets_address("192.0.2.1:1");

    ban_after(1);
    create();
    admission_offend(ad, &other, BAN_OFFENCE_TLS);
    conf.over = QUOTA_OVER_LOG;
    replace();
    admission_offend(ad, &client, BAN_OFFENCE_TLS);
    ck_assert(!admission_refuses(ad, &client) && !admission_refuses(ad, &other));
    replace(); /* still dry */
    ck_assert_uint_eq(log_lines_with("bans ended"), 0);
    conf.over = QUOTA_OVER_RESET;
    replace();
    EXPECT_LOG_LINES("listen front: 1 bans ended: they are of the dry run", 1);
    ck_assert(!admission_refuses(ad, &client));
    ck_assert(admission_refuses(ad, &other));
}

TEST(admission, counts_of_a_full_table_are_of_the_listener)
{
    struct address others[3] = {sockets_address("192.0.2.1:1"), sockets_address("192.0.2.2:1"),
                                sockets_address("192.0.2.3:1")};

    conf.clients.max_clients = 1;
    conf.clients.each.rate = (struct token_bucket_conf){1, 3600 * NS_PER_S, 1};
    create();
    ck_assert_int_eq(admission_enter(ad, &first, &others[0], &reason), ADMISSION_ADMIT);
    ck_assert_int_eq(admission_enter(ad, &second, &others[1], &reason), ADMISSION_ADMIT);
    ck_assert_ptr_null(second.client);
    admission_leave(&first);
    ck_assert_int_eq(admission_enter(ad, &first, &others[2], &reason), ADMISSION_ADMIT);
    admission_figures(ad, &listener, figure_log());
    EXPECT_LOG_LINES("uncounted=1 forgotten=1", 1);
}

static int attempt(void *cookie)
{
    struct admission *next;
    int rc = admission_create(&next, cookie);

    if (rc == 0)
        admission_destroy(next);
    return rc;
}

TEST(admission, change_that_lacks_memory_keeps_the_previous_limits)
{
    create();
    ck_assert_int_eq(enter(&first), ADMISSION_ADMIT);
    conf.clients.max_clients = 9;
    conf.before = ad;
    ck_assert_uint_eq(fault_each_allocation(attempt, &conf), 4);
    ck_assert_int_eq(enter(&second), ADMISSION_RESET);
}

TEST_ABORTS(admission, entering_twice_without_leaving_is_a_bug)
{
    create();
    (void)enter(&first);
    (void)enter(&first);
}
