/* limits/admission: listeners that share limits: what is counted once, and who is banned where. */
#include "base/clock.h"
#include "limits/admission.h"
#include "net/address.h"
#include "stats/figure.h"
#include "stats/figure_log.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/suite.h"

static struct admission_conf conf;
static struct admission_ticket first;
static struct address client;
static enum session_reason reason;

enum { FRONT, BACK, LISTENERS };

static struct admission *both[LISTENERS];
static struct admission_ticket tickets[LISTENERS];

/* The next admissions of both listeners: each shares [limits NAME] of ${names}; NULL: none. */
static void change_both(const char *const *names)
{
    struct admission *before[LISTENERS] = {both[FRONT], both[BACK]}, *next[LISTENERS] = {NULL};

    for (int i = 0; i < LISTENERS; i++) {
        conf.listener = i == FRONT ? "front" : "back";
        conf.before = before[i];
        conf.share = (struct admission_share){.name = names[i], .is_first = names[i] != NULL};
        for (int k = 0; k < LISTENERS; k++)
            if (names[i] && before[k] && admission_shared(before[k]) == names[i])
                conf.share.with = before[k];
        if (i == BACK && names[i] && names[i] == names[FRONT])
            conf.share = (struct admission_share){.name = names[i], .with = next[FRONT]};
        ck_assert_int_eq(admission_create(&next[i], &conf), 0);
    }
    for (int i = 0; i < LISTENERS; i++) {
        admission_begin(next[i], clock_now_ns());
        both[i] = next[i];
        if (tickets[i].of)
            admission_carry_over(both[i], &tickets[i], &client);
    }
    for (int i = 0; i < LISTENERS; i++)
        admission_destroy(before[i]);
}

static const char *const alone[] = {NULL, NULL}, *const together[] = {"all", "all"},
                         *const renamed[] = {"other", "other"}, *const split[] = {"all", "other"},
                         *const left[] = {NULL, "all"};

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    sockets_loopback(&client, 1);
    first = tickets[FRONT] = tickets[BACK] = (struct admission_ticket){0};
    both[FRONT] = both[BACK] = NULL;
    conf = (struct admission_conf){
        .clients = {.max_clients = 4,
                    .name = {.prefix_v4 = 32, .prefix_v6 = 64},
                    .each = {.max_connections = 2, .rate = {0, NS_PER_S, 1}}}};
}

static void teardown(void)
{
    admission_leave(&first);
    for (int i = 0; i < LISTENERS; i++) {
        admission_leave(&tickets[i]);
        admission_destroy(both[i]);
    }
}

static void ban_after(unsigned offences)
{
    conf.ban = (struct ban_conf){
        .offences = offences, .window_ns = 3600 * NS_PER_S, .ban_ns = 3600 * NS_PER_S};
}

GROUP(share, setup, teardown);

static enum admission_verdict enter_at(int i, struct admission_ticket *ticket)
{
    return admission_enter(both[i], ticket, &client, &reason);
}

/* Has the client as many connections as it may, seen from both? */
static bool is_full(void)
{
    bool full = true;

    for (int i = 0; i < LISTENERS; i++) {
        full = enter_at(i, &first) != ADMISSION_ADMIT && full;
        admission_leave(&first);
    }
    return full;
}

TEST(share, client_is_counted_once_over_all_listeners)
{
    change_both(together);
    for (int i = 0; i < LISTENERS; i++)
        ck_assert_int_eq(enter_at(i, &tickets[i]), ADMISSION_ADMIT);
    ck_assert(is_full());
    admission_leave(&tickets[FRONT]);
    ck_assert(!is_full());
}

static const struct {
    const char *const *names;
    unsigned max_clients;
    unsigned connections; /* of one client to one listener, or to both that share */
} changes[] = {{renamed, 4, 2}, {together, 9, 2}, {split, 4, 1}, {left, 4, 1}, {alone, 4, 1}};

TEST_EACH(share, open_connections_are_counted_once_after_each_change, ARRAY_LEN(changes))
{
    change_both(together);
    for (int i = 0; i < LISTENERS; i++)
        ck_assert_int_eq(enter_at(i, &tickets[i]), ADMISSION_ADMIT);
    conf.clients.max_clients = changes[_i].max_clients;
    conf.clients.each.max_connections = changes[_i].connections;
    change_both(changes[_i].names);
    ck_assert(is_full());
    conf.clients.max_clients = 4;
    conf.clients.each.max_connections = 2;
    change_both(together); /* and back */
    ck_assert(is_full());
    admission_leave(&tickets[FRONT]);
    ck_assert(!is_full());
    admission_leave(&tickets[BACK]);
    for (int i = 0; i < LISTENERS; i++)
        ck_assert_int_eq(enter_at(i, &tickets[i]), ADMISSION_ADMIT);
    ck_assert(is_full());
}

TEST_EACH(share, ban_of_one_listener_stays_for_all_over_each_change, ARRAY_LEN(changes))
{
    ban_after(2);
    change_both(together);
    admission_offend(both[FRONT], &client, BAN_OFFENCE_TLS);
    admission_offend(both[BACK], &client, BAN_OFFENCE_DENIED);
    EXPECT_LOG_LINES(
        "listen back: client 127.0.0.1: banned for 3600 s at all listeners with limits "
        "= all: offences: 2, the last: denied",
        1);
    conf.clients.max_clients = changes[_i].max_clients;
    change_both(changes[_i].names);
    for (int i = 0; i < LISTENERS; i++)
        ck_assert(admission_refuses(both[i], &client));
    ck_assert_uint_eq(log_lines_with("bans ended"), 0);
}

TEST(share, bans_of_a_listener_that_joins_hold_for_all)
{
    ban_after(1);
    change_both(alone);
    admission_offend(both[BACK], &client, BAN_OFFENCE_TLS);
    ck_assert(!admission_refuses(both[FRONT], &client));
    change_both(together);
    ck_assert(admission_refuses(both[FRONT], &client));
}

TEST(share, bans_of_another_prefix_end_once_and_not_once_a_listener)
{
    ban_after(1);
    change_both(together);
    admission_offend(both[BACK], &client, BAN_OFFENCE_TLS);
    conf.clients.name.prefix_v4 = 24;
    change_both(renamed);
    ck_assert(!admission_refuses(both[FRONT], &client));
    EXPECT_LOG_LINES(": 1 bans ended: ", 1);
}

TEST(share, figures_of_the_tables_are_shown_once)
{
    ban_after(1);
    change_both(together);
    ck_assert_int_eq(enter_at(BACK, &tickets[BACK]), ADMISSION_ADMIT);
    admission_offend(both[BACK], &client, BAN_OFFENCE_TLS);
    for (int i = 0; i < LISTENERS; i++) {
        const struct figure_object object = {.subject = FIGURE_LISTENER,
                                             .name = i == FRONT ? "front" : "back"};

        admission_figures(both[i], &object, figure_log());
        admission_figures_shared(both[i], figure_log());
    }
    EXPECT_LOG_LINES("clients_known=1", 1);
    EXPECT_LOG_LINES("stats limits all clients_known=1", 1);
    EXPECT_LOG_LINES("clients_banned=1", 1);
    EXPECT_LOG_LINES("stats limits all clients_banned=1", 1);
    EXPECT_LOG_LINES("stats listen front bans=0 ", 1);
    EXPECT_LOG_LINES("stats listen back bans=1 ", 1);
}
