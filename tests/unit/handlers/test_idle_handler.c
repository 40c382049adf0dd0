/* handlers/idle_handler: who is idle, never too early, and what is done then. */
#include <unistd.h>

#include "base/clock.h"
#include "service/echo.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LIMIT_NS (200 * NS_PER_MS)

static struct host host;
static int client;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    host_open(&host, &echo_ops, NULL);
    client = -1;
}

static void teardown(void)
{
    if (client >= 0)
        close(client);
    host_close(&host);
}

static void begin(struct idle_handler_conf conf)
{
    host.pipeline.idle = conf;
    host_pipeline(&host, "idle", NULL);
    client = host_client(&host);
}

/* Say something so often, for so long. */
static void chatter(int64_t every_ms, int64_t for_ns)
{
    for (int64_t until_ns = clock_now_ns() + for_ns; clock_now_ns() < until_ns;) {
        sockets_say(client, "x");
        sockets_hear(client, "x");
        PAUSE_MS(every_ms);
    }
}

/* A timer is for when nothing happens. */
START_TEST(what_happens_moves_no_timer)
{
    uint64_t tasks;

    begin((struct idle_handler_conf){.read_ns = 3600 * NS_PER_S, .all_ns = 3600 * NS_PER_S});
    chatter(0, LIMIT_NS);
    tasks = loop_runner_stats(host.loop).tasks_run;
    chatter(0, LIMIT_NS);
    ck_assert_uint_le(loop_runner_stats(host.loop).tasks_run - tasks, 3);
}
END_TEST

START_TEST(one_that_says_nothing_is_closed_and_not_too_early)
{
    int64_t began_at_ns = clock_now_ns();

    begin((struct idle_handler_conf){.read_ns = LIMIT_NS});
    sockets_hear_end(client);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, LIMIT_NS);
    sockets_end(client);
    host_expect_end(&host, SESSION_IDLE);
}
END_TEST

START_TEST(each_read_begins_the_time_anew)
{
    int64_t quiet_from_ns;

    begin((struct idle_handler_conf){.read_ns = 3 * LIMIT_NS});
    chatter(20, 6 * LIMIT_NS);
    quiet_from_ns = clock_now_ns();
    sockets_hear_end(client);
    ck_assert_int_ge(clock_now_ns() - quiet_from_ns, 2 * LIMIT_NS); /* the last one was before */
}
END_TEST

START_TEST(one_to_whom_nothing_goes_is_closed)
{
    begin((struct idle_handler_conf){.write_ns = 3 * LIMIT_NS});
    chatter(20, 6 * LIMIT_NS); /* an echo */
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    sockets_hear_end(client);
}
END_TEST

START_TEST(one_that_takes_nothing_is_closed_although_bytes_wait_for_it)
{
    begin((struct idle_handler_conf){.write_ns = LIMIT_NS});
    ck_assert_uint_gt(sockets_stuff(client, 0), 0); /* and none of its echo is read */
    UNTIL(atomic_load(&host.ended) == 1); /* which is closed in good order, and then cut */
    host_expect_end(&host, SESSION_IDLE);
}
END_TEST

START_TEST(one_that_is_not_read_is_not_the_one_who_is_silent)
{
    uint64_t turns;

    begin((struct idle_handler_conf){.read_ns = LIMIT_NS, .action = IDLE_HANDLER_LOG});
    ck_assert_uint_gt(sockets_stuff(client, 0), 0);
    turns = loop_runner_stats(host.loop).turns;
    PAUSE_MS(3 * LIMIT_NS / NS_PER_MS);
    ck_assert_uint_eq(log_lines_with("is idle"), 0);
    ck_assert_uint_le(loop_runner_stats(host.loop).turns - turns,
                      50); /* nor is it asked on and on */
}
END_TEST

/* The first look is a good while before the client is idle. */
START_TEST(while_bytes_wait_it_is_looked_at_before_the_time_is_over)
{
    struct loop_stats was, is;

    begin((struct idle_handler_conf){.write_ns = 30 * LIMIT_NS, .action = IDLE_HANDLER_LOG});
    ck_assert_uint_gt(sockets_stuff(client, 0), 0);
    loop_stats(host.loop, &was);
    UNTIL((loop_stats(host.loop, &is), is.tasks_run > was.tasks_run));
    ck_assert_uint_eq(log_lines_with("is idle"), 0);
}
END_TEST

/* At most one line a second: five looks, here. */
START_TEST(an_idle_client_is_looked_at_once_in_each_time)
{
    uint64_t tasks;

    begin((struct idle_handler_conf){.write_ns = LIMIT_NS, .action = IDLE_HANDLER_LOG});
    UNTIL(log_lines_with("is idle") == 1);
    tasks = loop_runner_stats(host.loop).tasks_run;
    UNTIL(log_lines_with("is idle") == 2);
    ck_assert_uint_le(loop_runner_stats(host.loop).tasks_run - tasks, 10);
}
END_TEST

START_TEST(after_its_end_of_file_a_client_cannot_say_anything)
{
    begin((struct idle_handler_conf){.read_ns = LIMIT_NS, .action = IDLE_HANDLER_LOG});
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    ck_assert_uint_eq(log_lines_with("idle"), 0);
}
END_TEST

START_TEST(either_way_counts_for_all)
{
    begin((struct idle_handler_conf){.all_ns = 3 * LIMIT_NS});
    chatter(20, 6 * LIMIT_NS);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    sockets_hear_end(client);
}
END_TEST

START_TEST(it_may_only_be_said_again_and_again)
{
    begin((struct idle_handler_conf){
        .read_ns = LIMIT_NS, .all_ns = 2 * LIMIT_NS, .action = IDLE_HANDLER_LOG});
    UNTIL(log_lines_with("is idle: nothing was read for 200 ms") >= 2);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    sockets_say(client, "x");
    sockets_hear(client, "x");
}
END_TEST

START_TEST(what_is_found_for_reads_does_not_put_all_off)
{
    begin((struct idle_handler_conf){
        .read_ns = LIMIT_NS, .all_ns = 5 * LIMIT_NS, .action = IDLE_HANDLER_LOG});
    UNTIL(log_lines_with("nothing was read or written for 1000 ms") == 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handlers/idle_handler");
    TCase *tc = suite_group(suite, "idle handler");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, one_that_says_nothing_is_closed_and_not_too_early);
    tcase_add_test(tc, each_read_begins_the_time_anew);
    tcase_add_test(tc, what_happens_moves_no_timer);
    tcase_add_test(tc, one_to_whom_nothing_goes_is_closed);
    tcase_add_test(tc, one_that_takes_nothing_is_closed_although_bytes_wait_for_it);
    tcase_add_test(tc, one_that_is_not_read_is_not_the_one_who_is_silent);
    tcase_add_test(tc, while_bytes_wait_it_is_looked_at_before_the_time_is_over);
    tcase_add_test(tc, an_idle_client_is_looked_at_once_in_each_time);
    tcase_add_test(tc, after_its_end_of_file_a_client_cannot_say_anything);
    tcase_add_test(tc, either_way_counts_for_all);
    tcase_add_test(tc, it_may_only_be_said_again_and_again);
    tcase_add_test(tc, what_is_found_for_reads_does_not_put_all_off);
    return suite_run(suite);
}
