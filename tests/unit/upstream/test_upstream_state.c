/*
 * upstream/upstream_state: counters and health that outlive the process, also of servers whose
 * names are looked up later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stats/counters_set.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "base/clock.h"
#include "support/suite.h"
#include "upstream/upstream_internal.h"

#define LINES 3

static struct address literal;
static struct upstream_server_conf lines[LINES]; /* two addresses, a name */
static struct upstream_conf conf;
static struct upstream *upstream;
static char *text;
static size_t text_len;

static void setup(void)
{
    static const char *const ids[LINES] = {"a", "b", "name"};

    log_lines_capture(LOG_LEVEL_NOTICE);
    sockets_loopback(&literal, 7);
    conf = (struct upstream_conf){
        .name = "back",
        .servers = lines,
        .n_servers = LINES,
        .checks = {.kind = UPSTREAM_CHECK_TCP, .health = {.initial = HEALTH_STARTS_UP}}};
    for (unsigned i = 0; i < LINES; i++)
        lines[i] = (struct upstream_server_conf){.id = ids[i],
                                                 .address_text = "there",
                                                 .addresses = &literal,
                                                 .n_addresses = 1,
                                                 .weight = 1};
    lines[2].names = UPSTREAM_NAME_EACH;
    lines[2].addresses = NULL;
    lines[2].n_addresses = 0;
}

static void open_group(void)
{
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
}

static void teardown(void)
{
    upstream_destroy(upstream);
    upstream = NULL;
    free(text);
    text = NULL;
}

static struct upstream_server *find(const char *name)
{
    const struct server_set *set = membership_now(&upstream->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (strcmp(set->servers[i]->name, name) == 0)
            return set->servers[i];
    ck_abort_msg("no server %s", name);
}

static bool is_down(const char *name)
{
    return (endpoint_load(&find(name)->endpoint) & ENDPOINT_DOWN) != 0;
}

static uint64_t began(const char *name)
{
    return atomic_load(&find(name)->counters.began);
}

static void continue_server(const char *name, const char *now, const char *before)
{
    struct counters_report r = {.text = now, .before = before};

    ck_assert_int_eq(upstream_state_continue_server(upstream, name, &r, !before), 0);
}

/* The line `name` is looked up: 127.0.0.1:1001. */
static void look_up(void)
{
    struct membership *m = &upstream->membership;
    struct address a;
    struct membership_place place = {.list = &a, .n = 1, .weight = 1};

    sockets_loopback(&a, 1001);
    ck_assert_int_eq(membership_update(m, m->lines[2], &place, 1, NULL), 1);
}

/* With the state of all servers since 7 ns. */
static const char *write_text(void)
{
    const struct server_set *set = membership_now(&upstream->membership);
    FILE *f;

    for (unsigned i = 0; i < set->n; i++)
        atomic_store(&set->servers[i]->endpoint.changed_at_ns, 7);
    free(text);
    f = open_memstream(&text, &text_len);
    ck_assert_ptr_nonnull(f);
    upstream_state_write(upstream, f);
    ck_assert_int_eq(fclose(f), 0);
    return text;
}

GROUP(upstream_state, setup, teardown);

TEST(upstream_state, state_has_a_line_for_the_upstream_and_for_each_server)
{
    open_group();
    look_up();
    counters_began(&upstream->counters);
    atomic_store(&upstream->late_checks, 4);
    counters_began(&find("b")->counters);
    counters_ended(&find("b")->counters, SESSION_IDLE, 1, 2);
    counters_connect_failed(&find("b")->connects);
    (void)endpoint_set_flag(&find("a")->endpoint, ENDPOINT_DOWN);
    ck_assert_str_eq(write_text(),
                     "upstream back late_checks=4 sessions_total=1\n"
                     "server back/a down=yes since=7\n"
                     "server back/b down=no since=7 connect_failures=1 idle=1 bytes_out=2 "
                     "bytes_in=1 sessions_total=1\n"
                     "server back/name@127.0.0.1:1001 down=no since=7\n");
}

TEST(upstream_state, counters_of_the_upstream_continue)
{
    struct counters_report first = {.text = " retries=3 sessions_total=5 late_checks=2"};
    struct counters_report second = {.text = " retries=4 sessions_total=5 retries_refused=1",
                                     .before = " retries=3 sessions_total=5"};

    open_group();
    upstream_state_continue(upstream, &first);
    upstream_state_continue(upstream, &second);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 5);
    ck_assert_uint_eq(atomic_load(&upstream->late_checks), 2);
    ck_assert_uint_eq(atomic_load(&upstream->retry_budget.retries), 4);
    ck_assert_uint_eq(atomic_load(&upstream->retry_budget.refused), 1);
}

TEST(upstream_state, health_of_a_server_continues)
{
    open_group();
    continue_server("a", "down=yes sessions_total=5", NULL);
    continue_server("b", "down=no sessions_total=6", NULL);
    ck_assert(is_down("a") && !is_down("b"));
    ck_assert_uint_eq(began("a"), 5);
    ck_assert_uint_eq(began("b"), 6);
}

TEST(upstream_state, time_and_number_of_downs_of_a_server_continue)
{
    open_group();
    continue_server("a", "down=yes since=21 downs=2", NULL);
    continue_server("b", "down=no,checked ejected=22,3 since=23 downs=4", NULL);
    continue_server("name@127.0.0.1:1001", "down=yes since=24 downs=5", NULL);
    look_up();
    ck_assert_int_eq(atomic_load(&find("a")->endpoint.changed_at_ns), 21);
    ck_assert_int_eq(atomic_load(&find("b")->endpoint.changed_at_ns), 23);
    ck_assert_int_eq(atomic_load(&find("name@127.0.0.1:1001")->endpoint.changed_at_ns), 24);
    ck_assert_uint_eq(atomic_load(&find("a")->endpoint.downs), 2);
    ck_assert_uint_eq(atomic_load(&find("name@127.0.0.1:1001")->endpoint.downs), 5);
}

static struct response_time *times_of(const char *name)
{
    return &find(name)->endpoint.times;
}

TEST(upstream_state, measured_times_of_a_server_are_told_and_continue)
{
    open_group();
    look_up();
    response_time_ended(&times_of("a")->connect, 500, 40);
    response_time_ended(&times_of("a")->first_byte, 6000, 41);
    ck_assert_ptr_nonnull(
        strstr(write_text(), "server back/a down=no since=7 times=500,40,6000,41\n"));
    continue_server("b", "down=no since=21 times=700,50,8000,51 sessions_total=6", NULL);
    ck_assert_uint_eq(response_time_average_ns(&times_of("b")->connect), 700);
    ck_assert_uint_eq(response_time_average_ns(&times_of("b")->first_byte), 8000);
    ck_assert_int_eq(atomic_load(&times_of("b")->first_byte.measured_at_ns), 51);
    ck_assert_uint_eq(began("b"), 6);
}

static const char *const bad_times[] = {"1", "1,2,3", "x,1,2,3", "5,9223372036854775807,5,0",
                                        "99999999999999999999,1,5,-1"};

TEST_EACH(upstream_state, times_that_cannot_be_are_ignored, ARRAY_LEN(bad_times))
{
    char line[100];

    open_group();
    snprintf(line, sizeof(line), "down=no since=21 times=%s sessions_total=6", bad_times[_i]);
    continue_server("b", line, NULL);
    ck_assert(!response_time_is_measured(&times_of("b")->connect));
    ck_assert(!response_time_is_measured(&times_of("b")->first_byte));
    ck_assert_uint_eq(began("b"), 6);
}

static void stay_with_one(void)
{
    conf.failback = UPSTREAM_FAILBACK_NO;
    conf.balance = BALANCER_FIRST;
    open_group();
}

TEST(upstream_state, state_tells_the_server_in_use)
{
    stay_with_one();
    (void)endpoint_set_flag(&find("a")->endpoint, ENDPOINT_DOWN);
    (void)endpoint_clear_flag(&find("a")->endpoint, ENDPOINT_DOWN);
    ck_assert_str_eq(write_text(), "upstream back in_use_changes=1\n"
                                   "server back/a down=no since=7\n"
                                   "server back/b down=no since=7 in_use=yes\n");
}

TEST(upstream_state, server_in_use_continues_and_counts_no_change)
{
    struct counters_report changes = {.text = " in_use_changes=3"};

    stay_with_one();
    upstream_state_continue(upstream, &changes);
    continue_server("a", "down=no since=7 sessions_total=5", NULL);
    continue_server("b", "down=no since=7 in_use=yes sessions_total=5", NULL);
    ck_assert(upstream_in_use_is(find("b")) && !upstream_in_use_is(find("a")));
    (void)endpoint_set_flag(&find("a")->endpoint, ENDPOINT_DOWN);
    (void)endpoint_clear_flag(&find("a")->endpoint, ENDPOINT_DOWN);
    ck_assert(upstream_in_use_is(find("b")));
    ck_assert_uint_eq(atomic_load(&upstream->in_use.changes), 3);
}

TEST(upstream_state, server_in_use_continues_when_its_name_is_resolved)
{
    stay_with_one();
    continue_server("a", "down=no since=7", NULL);
    continue_server("name@127.0.0.1:1001", "down=no since=7 in_use=yes", NULL);
    look_up();
    ck_assert(upstream_in_use_is(find("name@127.0.0.1:1001")) && !upstream_in_use_is(find("a")));
}

/* As the configuration of this process says. */
TEST(upstream_state, server_in_use_is_not_kept_with_failback)
{
    open_group();
    lines[0].weight = 1;
    continue_server("b", "down=no since=7 in_use=yes", NULL);
    ck_assert(upstream_in_use_is(find("a")));
}

TEST(upstream_state, change_time_in_the_future_is_ignored)
{
    char line[60];

    open_group();
    snprintf(line, sizeof(line), "down=no since=%lld", (long long)(clock_now_ns() + NS_PER_S));
    continue_server("a", line, NULL);
    ck_assert_int_le(atomic_load(&find("a")->endpoint.changed_at_ns), clock_now_ns());
}

TEST(upstream_state, server_reported_up_needs_no_first_check)
{
    conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    open_group();
    ck_assert(is_down("a") && is_down("b"));
    continue_server("a", "down=no", NULL);
    ck_assert(!is_down("a") && is_down("b"));
}

TEST(upstream_state, checked_flag_of_a_server_continues)
{
    open_group();
    continue_server("a", "down=no,checked", NULL);
    continue_server("b", "down=no", NULL);
    ck_assert(atomic_load(&find("a")->endpoint.is_checked));
    ck_assert(!atomic_load(&find("b")->endpoint.is_checked));
    ck_assert_ptr_nonnull(strstr(write_text(), "server back/a down=no,checked"));
}

TEST(upstream_state, later_reports_do_not_change_the_health)
{
    open_group();
    continue_server("a", "down=yes sessions_total=5", " sessions_total=4");
    ck_assert(!is_down("a"));
    ck_assert_uint_eq(began("a"), 1);
}

TEST(upstream_state, a_server_that_is_not_checked_is_not_down)
{
    conf.checks.kind = UPSTREAM_CHECK_OFF;
    open_group();
    continue_server("a", "down=yes", NULL);
    ck_assert(!is_down("a"));
}

TEST(upstream_state, a_disabled_server_is_not_down)
{
    lines[0].disabled = true;
    open_group();
    continue_server("a", "down=yes", NULL);
    ck_assert(!is_down("a"));
}

TEST(upstream_state, state_waits_for_a_server_that_is_looked_up_later)
{
    open_group();
    continue_server("name@127.0.0.1:1001", "down=yes sessions_total=5 idle=2", NULL);
    continue_server("name@127.0.0.1:1001", " sessions_total=6 idle=3", " sessions_total=5 idle=2");
    continue_server("name@127.0.0.1:1002", " sessions_total=9", NULL);
    look_up();
    ck_assert(is_down("name@127.0.0.1:1001"));
    ck_assert_uint_eq(began("name@127.0.0.1:1001"), 6);
    ck_assert_uint_eq(atomic_load(&find("name@127.0.0.1:1001")->counters.ended[SESSION_IDLE]), 3);
    continue_server("name@127.0.0.1:1001", " sessions_total=7", " sessions_total=6");
    ck_assert_uint_eq(began("name@127.0.0.1:1001"), 7);
}

TEST(upstream_state, reports_to_a_server_that_is_looked_up_later_go_on)
{
    struct counters_report r = {.text = " sessions_total=5"};

    open_group();
    ck_assert_int_eq(upstream_state_continue_server(upstream, "name@127.0.0.1:1001", &r, true), 0);
    look_up();
    r.before = r.text;
    r.text = " sessions_total=6";
    ck_assert_int_eq(upstream_state_continue_server(upstream, "name@127.0.0.1:1001", &r, false), 0);
    ck_assert_uint_eq(began("name@127.0.0.1:1001"), 6);
}

TEST(upstream_state, report_in_the_order_of_the_set_needs_no_search)
{
    open_group();
    continue_server("a", "", NULL);
    ck_assert_uint_eq(upstream->state.next, 1);
    continue_server("b", " sessions_total=1", "");
    ck_assert_uint_eq(upstream->state.next, 2);
    continue_server("a", " sessions_total=2", "");
    ck_assert_uint_eq(upstream->state.next, 1);
    continue_server("a", " sessions_total=3", " sessions_total=2");
    ck_assert_uint_eq(began("a"), 3);
    ck_assert_uint_eq(began("b"), 1);
}

TEST(upstream_state, lines_of_unresolved_servers_need_no_search)
{
    struct list *first;

    open_group();
    continue_server("name@127.0.0.1:1001", " sessions_total=1", NULL);
    continue_server("name@127.0.0.1:1002", " sessions_total=1", NULL);
    first = upstream->state.expected.next;
    continue_server("name@127.0.0.1:1001", " sessions_total=2", " sessions_total=1");
    ck_assert_ptr_eq(upstream->state.last, first);
    continue_server("name@127.0.0.1:1002", " sessions_total=2", " sessions_total=1");
    ck_assert_ptr_eq(upstream->state.last, first->next);
    look_up();
    ck_assert_uint_eq(began("name@127.0.0.1:1001"), 2);
    continue_server("name@127.0.0.1:1002", " sessions_total=3", " sessions_total=2");
    ck_assert_uint_eq(upstream->state.n_expected, 1);
}

TEST(upstream_state, lines_held_for_unresolved_servers_are_bounded)
{
    open_group();
    continue_server("name@127.0.0.1:1001", " sessions_total=1", NULL);
    continue_server("name@127.0.0.1:1002", " sessions_total=1", NULL);
    upstream->state.n_expected = BALANCER_MAX_ENDPOINTS; /* as if there were so many */
    continue_server("name@127.0.0.1:1003", " sessions_total=1", NULL);
    ck_assert_uint_eq(upstream->state.n_expected, BALANCER_MAX_ENDPOINTS);
    upstream->state.n_expected = 2;
    look_up();
    ck_assert_uint_eq(began("name@127.0.0.1:1001"), 0);
    ck_assert_uint_eq(upstream->state.n_expected, 2);
}

TEST(upstream_state, failed_allocation_holds_no_line)
{
    struct counters_report r = {.text = ""};

    open_group();
    fault_plan(FAULT_MEMORY, 0, 1, 0);
    ck_assert_int_eq(upstream_state_continue_server(upstream, "name@127.0.0.1:1001", &r, true),
                     -ENOMEM);
    look_up();
    ck_assert_uint_eq(began("name@127.0.0.1:1001"), 0);
}

static void continue_ejected(const char *name, int64_t until_ns)
{
    char line[80];
    struct counters_report r = {.text = line};

    snprintf(line, sizeof(line), "down=no ejected=%lld,3 sessions_total=1", (long long)until_ns);
    ck_assert_int_eq(upstream_state_continue_server(upstream, name, &r, true), 0);
}

static bool is_ejected(const char *name)
{
    return (endpoint_load(&find(name)->endpoint) & ENDPOINT_EJECTED) != 0;
}

TEST(upstream_state, ejection_continues_for_resolved_servers)
{
    int64_t now_ns = clock_now_ns();

    conf.ejection = (struct ejection_conf){
        .failures = 1, .time_ns = NS_PER_S, .time_max_ns = 3600 * NS_PER_S, .max_percent = 100};
    open_group();
    continue_ejected("a", now_ns + 1800 * NS_PER_S);
    continue_ejected("name@127.0.0.1:1001", now_ns + 1800 * NS_PER_S);
    look_up();
    ck_assert(is_ejected("a") && is_ejected("name@127.0.0.1:1001"));
    ck_assert_uint_eq(find("a")->ejection.times, 3);
    ck_assert_uint_eq(atomic_load(&find("a")->endpoint.downs), 0);
    ck_assert_ptr_nonnull(strstr(write_text(), "server back/a down=no ejected="));
    ck_assert(ejection_cancel(&upstream->ejection, &find("a")->ejection, &find("a")->endpoint));
    continue_ejected("a", now_ns - 1);
    ck_assert(!is_ejected("a"));
}
