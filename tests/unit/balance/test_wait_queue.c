/* balance/wait_queue: who waits while servers are full, or down. */
#include <errno.h>

#include "balance/wait_queue.h"
#include "base/clock.h"
#include "support/endpoints.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"

static struct loop *loop;
static struct endpoints es;
static struct balancer *b;
static struct wait_queue queue;
static struct balancer_pick_state pick;
static struct wait_ticket *ticket;
static _Atomic(struct endpoint *) given;
static atomic_int ended; /* 1: with `given`; -errno */

static void on_done(void *cookie, struct endpoint *e, int error)
{
    ck_assert_ptr_eq(cookie, &pick);
    atomic_store(&given, e);
    atomic_store(&ended, e ? 1 : error);
}

static void setup(void)
{
    loop = loop_runner_create();
    endpoints_open(&es, 2);
    es.all[0].max_connections = es.all[1].max_connections = 1;
    b = endpoints_balancer(&es, BALANCER_ROUND_ROBIN);
    balancer_begin(&pick, 1);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
    wait_queue_close(&queue);
    balancer_destroy(b);
    endpoints_close(&es);
}

static void do_join(void *arg)
{
    (void)arg;
    ck_assert_int_eq(wait_queue_join(&queue, &ticket, &pick, on_done, &pick), 0);
}

/* Both servers are full, and one session waits. */
static void join(int64_t timeout_ns)
{
    wait_queue_init(&queue, 10, timeout_ns);
    wait_queue_use(&queue, b);
    ck_assert_int_ge(endpoints_pick(&es, b, 1), 0);
    ck_assert_int_ge(endpoints_pick(&es, b, 2), 0);
    loop_runner_call(loop, do_join, NULL);
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
}

/* All servers are down, and no session is there any more. */
static void all_go_down(void)
{
    for (unsigned i = 0; i < 2; i++) {
        endpoint_set_flag(&es.all[i], ENDPOINT_DOWN);
        endpoint_leave(&es.all[i]);
        wait_queue_serve(&queue);
    }
}

GROUP(wait, setup, teardown);

TEST(wait, one_that_waits_goes_on_waiting_when_the_last_server_goes_down)
{
    join(3600 * NS_PER_S);
    all_go_down();
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
    endpoint_clear_flag(&es.all[1], ENDPOINT_DOWN);
    wait_queue_serve(&queue);
    UNTIL(atomic_load(&ended) == 1);
    ck_assert_ptr_eq(atomic_load(&given), &es.all[1]);
    endpoint_leave(&es.all[1]);
}

TEST(wait, while_all_are_down_the_wait_ends_in_time)
{
    join(100 * NS_PER_MS);
    all_go_down();
    UNTIL(atomic_load(&ended) == -ETIMEDOUT);
    ck_assert_uint_eq(wait_queue_length(&queue), 0);
}

TEST(wait, one_that_has_tried_a_server_is_told_that_none_is_left)
{
    pick.n_tried = 1;
    pick.tried[0] = 0;
    pick.generation = es.conf.generation;
    join(3600 * NS_PER_S);
    all_go_down();
    UNTIL(atomic_load(&ended) == -ENOENT);
}

static void do_join_in_vain(void *arg)
{
    struct wait_ticket *other;
    struct balancer_pick_state none;

    (void)arg;
    balancer_begin(&none, 2);
    ck_assert_int_eq(wait_queue_join(&queue, &other, &none, on_done, &pick), -ENOBUFS);
}

TEST(wait, a_shorter_queue_keeps_those_in_it)
{
    join(3600 * NS_PER_S);
    wait_queue_set(&queue, 1, NS_PER_S);
    loop_runner_call(loop, do_join_in_vain, NULL);
    wait_queue_set(&queue, 0, NS_PER_S);
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
    endpoint_leave(&es.all[1]);
    wait_queue_serve(&queue);
    UNTIL(atomic_load(&ended) == 1);
    endpoint_leave(&es.all[1]);
    endpoint_leave(&es.all[0]);
}

/* The servers have room: only the pause makes sessions wait. */
static void join_paused(unsigned max_held)
{
    wait_queue_init(&queue, 0, NS_PER_S);
    wait_queue_use(&queue, b);
    wait_queue_pause(&queue, max_held, clock_now_ns());
    loop_runner_call(loop, do_join, NULL);
    wait_queue_serve(&queue);
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
}

TEST(wait, while_it_is_paused_sessions_wait_though_a_server_has_room)
{
    join_paused(1);
    loop_runner_call(loop, do_join_in_vain, NULL);
    hold_open(&queue.hold);
    wait_queue_serve(&queue);
    UNTIL(atomic_load(&ended) == 1);
    endpoint_leave(atomic_load(&given));
    loop_runner_call(loop, do_join_in_vain, NULL);
}

TEST(wait, a_pause_lets_as_many_go_on_as_are_allowed)
{
    join_paused(2);
    (void)hold_allow(&queue.hold, 1);
    wait_queue_serve(&queue);
    UNTIL(atomic_load(&ended) == 1);
    endpoint_leave(atomic_load(&given));
    atomic_store(&ended, 0);
    loop_runner_call(loop, do_join, NULL);
    wait_queue_serve(&queue);
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
    hold_open(&queue.hold);
    wait_queue_serve(&queue);
    UNTIL(atomic_load(&ended) == 1);
    endpoint_leave(atomic_load(&given));
}

TEST(wait, one_that_may_go_on_but_finds_no_server_uses_up_nothing)
{
    join_paused(1);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    (void)hold_allow(&queue.hold, 1);
    wait_queue_serve(&queue);
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
    endpoint_clear_flag(&es.all[1], ENDPOINT_DOWN);
    wait_queue_serve(&queue);
    UNTIL(atomic_load(&ended) == 1);
    endpoint_leave(atomic_load(&given));
}

/* 0: it waits because of a shorter pause; 1: for a server. */
TEST_EACH(wait, a_pause_holds_those_too_that_have_come_before, 2)
{
    if (_i == 0) {
        wait_queue_init(&queue, 0, NS_PER_S);
        wait_queue_use(&queue, b);
        wait_queue_pause(&queue, 1, clock_now_ns() - WAIT_QUEUE_RELEASE_NS + 200 * NS_PER_MS);
        loop_runner_call(loop, do_join, NULL);
    } else {
        join(200 * NS_PER_MS);
    }
    wait_queue_pause(&queue, 1, clock_now_ns());
    PAUSE_MS(400);
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
    hold_open(&queue.hold);
    for (unsigned i = 0; _i == 1 && i < 2; i++)
        endpoint_leave(&es.all[i]);
    wait_queue_serve(&queue);
    UNTIL(atomic_load(&ended) == 1);
    endpoint_leave(atomic_load(&given));
}

TEST(wait, those_who_were_held_wait_a_minute_from_the_end_of_the_pause)
{
    join(NS_PER_S);
    wait_queue_pause(&queue, 1, clock_now_ns() + 3600 * NS_PER_S);
    PAUSE_MS(1200);
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
    wait_queue_resume(&queue, clock_now_ns() - WAIT_QUEUE_RELEASE_NS);
    UNTIL(atomic_load(&ended) == -ETIMEDOUT);
    for (unsigned i = 0; i < 2; i++)
        endpoint_leave(&es.all[i]);
}
