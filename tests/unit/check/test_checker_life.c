/* check/checker: servers that are removed, and the end of the loop, while they are checked. */
#include <errno.h>
#include <unistd.h>

#include "check/checker.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/check/checker_servers.h"

/* ---- life ---- */

GROUP(life, setup, teardown);

TEST(life, removed_endpoint_ends_its_check_without_an_outcome)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);
    unsigned descriptors;

    set_address(0, &a);
    rules_conf.check.timeout_ns = LATER_NS;
    rules_conf.health.fall = 1;
    on_loop(do_create, 0);
    on_loop(do_open, 0);
    descriptors = process_descriptors();
    on_loop(do_add_all, 1);
    UNTIL(load_now().under_way == 1);
    on_loop(do_remove, 0);
    UNTIL(load_now().under_way == 0);
    ck_assert_uint_eq(load_now().targets, 0);
    ck_assert_uint_eq(process_descriptors(), descriptors);
    PAUSE_MS(200);
    ck_assert_uint_eq(atomic_load(&n_changes), 0);
    ck_assert_uint_eq(atomic_load(&n_connects), 1);
    close(filler);
    close(deaf);
}

TEST(life, removing_an_endpoint_that_waits_for_its_answer_closes_the_connection)
{
    struct address a;
    int listening = sockets_listen(&a, 5), server;

    rules_conf.check.timeout_ns = LATER_NS;
    rules_conf.check.expect = (struct check_bytes){(const uint8_t *)"PONG", 4};
    set_address(0, &a);
    start(1);
    server = sockets_accept(listening);
    on_loop(do_remove, 0);
    sockets_hear_end(server);
    ck_assert_uint_eq(atomic_load(&n_changes), 0);
    close(server);
    close(listening);
}

TEST(life, endpoint_that_waits_for_a_slot_can_be_removed)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);

    max_under_way = 1;
    rules_conf.health.interval_ns = NS_PER_MS;
    for (unsigned i = 0; i < 3; i++)
        set_address(i, &a);
    start(3);
    UNTIL(load_now().waiting == 2);
    on_loop(do_remove, 1);
    ck_assert_uint_eq(load_now().waiting, 1);
    on_loop(do_remove, 2);
    on_loop(do_remove, 0);
    UNTIL(load_now().under_way == 0);
    ck_assert_uint_eq(load_now().waiting, 0);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&n_connects), 1);
    close(filler);
    close(deaf);
}

TEST(life, endpoint_can_be_removed_in_its_down_callback)
{
    struct address a;
    int bound = sockets_bound(&a);

    atomic_store(&remove_when_changed, true);
    set_address(0, &a);
    start(1);
    UNTIL(atomic_load(&n_changes) == 1);
    ck_assert_uint_eq(load_now().targets, 0);
    ck_assert(has(0, ENDPOINT_DOWN));
    PAUSE_MS(60);
    ck_assert_uint_eq(atomic_load(&n_connects), 3);
    close(bound);
}

TEST(life, all_endpoints_can_be_removed_in_any_state)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);

    max_under_way = 2;
    for (unsigned i = 0; i < 10; i++)
        set_address(i, &a);
    start(10);
    UNTIL(load_now().waiting == 8);
    for (unsigned i = 0; i < 10; i++)
        on_loop(do_remove, i);
    ck_assert_uint_eq(load_now().targets, 0);
    ck_assert_uint_eq(load_now().waiting, 0);
    UNTIL(load_now().under_way == 0);
    on_loop(do_add_all, 1); /* there is space for others */
    UNTIL(load_now().under_way == 1);
    close(filler);
    close(deaf);
}

TEST(life, the_end_of_the_loop_ends_the_checks)
{
    struct address a;
    int filler, deaf = sockets_listen_deaf(&a, &filler);

    max_under_way = 5;
    for (unsigned i = 0; i < 10; i++)
        set_address(i, &a);
    start(10);
    UNTIL(load_now().waiting == 5 && load_now().under_way == 5);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&n_changes), 0);
    ck_assert_uint_eq(atomic_load(&n_connects), 5);
    close(filler);
    close(deaf); /* teardown() counts descriptors */
}

TEST(life, end_of_the_loop_closes_checks_that_wait_for_an_answer)
{
    struct address a;
    int listening = sockets_listen(&a, 5), server;

    rules_conf.check.send = (struct check_bytes){(const uint8_t *)"PING", 4};
    rules_conf.check.expect = (struct check_bytes){(const uint8_t *)"PONG", 4};
    set_address(0, &a);
    start(1);
    server = sockets_accept(listening);
    sockets_hear(server, "PING");
    loop_runner_stop(loop);
    sockets_hear_end(server);
    close(server);
    close(listening);
}

static atomic_int added_late;

static void run_late(struct task *t)
{
    struct checker_target_conf late = {.endpoint = &endpoints[0]};

    (void)t;
    ck_assert_int_eq(checker_target_create(&targets[0]), 0);
    atomic_store(&added_late, checker_add(targets[0], group, &late));
}

static const struct task_type late_type = {.name = "late", .run = run_late, .drop = run_late};

static void add_at_stop(void *arg)
{
    loop_at_stop(loop, arg);
}

TEST(life, endpoint_cannot_be_added_while_the_loop_stops)
{
    static struct task late = {.type = &late_type};

    start(0);
    loop_runner_call(loop, add_at_stop, &late);
    loop_runner_stop(loop);
    ck_assert_int_eq(atomic_load(&added_late), -ESHUTDOWN);
}

TEST(life, checker_whose_loop_never_ran_can_be_destroyed)
{
    do_create(NULL);
    loop_stop(loop, 0, 0);
}

TEST_ABORTS(life, adding_on_another_thread_than_the_loops_is_a_bug)
{
    start(0);
    do_add(&(unsigned){0});
}
