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

TEST(wait, queued_session_keeps_waiting_when_the_last_server_goes_down)
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

TEST(wait, wait_ends_in_time_while_all_servers_are_down)
{
    join(100 * NS_PER_MS);
    all_go_down();
    UNTIL(atomic_load(&ended) == -ETIMEDOUT);
    ck_assert_uint_eq(wait_queue_length(&queue), 0);
}

TEST(wait, queued_session_that_tried_a_server_ends_when_none_is_left)
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

TEST(wait, shorter_queue_keeps_its_waiting_sessions)
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

TEST(wait, sessions_wait_during_a_pause_even_if_a_server_has_capacity)
{
    join_paused(1);
    loop_runner_call(loop, do_join_in_vain, NULL);
    hold_open(&queue.hold);
    wait_queue_serve(&queue);
    UNTIL(atomic_load(&ended) == 1);
    endpoint_leave(atomic_load(&given));
    loop_runner_call(loop, do_join_in_vain, NULL);
}

TEST(wait, allowed_number_of_sessions_passes_a_pause)
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

TEST(wait, allowance_is_kept_when_no_server_can_be_picked)
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
TEST_EACH(wait, pause_holds_sessions_queued_before_it, 2)
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

TEST(wait, session_held_by_a_pause_waits_a_minute_from_its_end)
{
    join(NS_PER_S);
    wait_queue_pause(&queue, 1, clock_now_ns() + 3600 * NS_PER_S);
    PAUSE_MS(1200);
    ck_assert_uint_eq(wait_queue_length(&queue), 1);
    wait_queue_resume(&queue, clock_now_ns() - WAIT_QUEUE_RELEASE_NS);
    ck_assert(!hold_is_closed(&queue.hold));
    UNTIL(atomic_load(&ended) == -ETIMEDOUT);
    for (unsigned i = 0; i < 2; i++)
        endpoint_leave(&es.all[i]);
}
