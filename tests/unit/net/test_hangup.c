/* net/hangup: resets of sockets that are not read, and how many system calls they cost. */
#include <stdatomic.h>
#include <unistd.h>

#include "engine/loop_internal.h"
#include "net/hangup.h"
#include "support/fault.h"
#include "support/hangups.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(hangup, hangups_setup, hangups_teardown);

/* 0: before it is registered; 1: after that. */
TEST_EACH(hangup, a_reset_is_reported_once, 2)
{
    struct place *p = _i == 0 ? hangups_paused(0, false) : hangups_registered_place(0, false);

    hangups_reset(p);
    UNTIL(atomic_load(&p->events) == 1);
    loop_runner_turn(hangups.loop);
    PAUSE_MS(3 * HANGUP_SETTLE_NS / NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
}

TEST_EACH(hangup, bytes_and_an_end_of_file_are_not_reported, 2)
{
    struct place *p = hangups_registered_place(0, _i), *last = hangups_registered_place(1, _i);

    sockets_say(p->theirs, "hello");
    sockets_end(p->theirs);
    hangups_reset(last);
    UNTIL(atomic_load(&last->events) == 1);
    ck_assert_uint_eq(atomic_load(&p->events), 0);
}

static void do_read_hung_up(void *arg)
{
    struct place *p = arg;

    p->was_hung_up = p->watch.hung_up;
}

static bool is_hung_up(struct place *p)
{
    loop_runner_call(hangups.loop, do_read_hung_up, p);
    return p->was_hung_up;
}

/* 0: asked for before the socket is registered; 1: later; 2: when the peer has ended already. */
TEST_EACH(hangup, end_of_file_is_reported_once_on_request_and_a_reset_after_it, 3)
{
    struct place *p = _i == 0 ? hangups_paused(0, false) : hangups_registered_place(0, false);

    if (_i == 2)
        sockets_end(p->theirs);
    loop_runner_call(hangups.loop, hangups_do_listen_end, p);
    if (_i < 2)
        sockets_end(p->theirs);
    UNTIL(atomic_load(&p->events) == 1);
    ck_assert(!is_hung_up(p));
    PAUSE_MS(3 * HANGUP_SETTLE_NS / NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
    hangups_reset(p);
    UNTIL(atomic_load(&p->events) == 2);
    ck_assert(is_hung_up(p));
}

TEST(hangup, an_end_of_file_is_not_reported_in_the_next_pause)
{
    struct place *p = hangups_registered_place(0, false),
                 *last = hangups_registered_place(1, false);

    loop_runner_call(hangups.loop, hangups_do_listen_end, p);
    loop_runner_call(hangups.loop, hangups_do_leave, p);
    sockets_end(p->theirs);
    loop_runner_call(hangups.loop, hangups_do_listen, p);
    UNTIL(hangups_registered(p));
    hangups_reset(last);
    UNTIL(atomic_load(&last->events) == 1);
    ck_assert_uint_eq(atomic_load(&p->events), 0);
}

TEST(hangup, a_unix_peer_that_closes_its_socket_is_reported)
{
    struct place *p = hangups_registered_place(0, true);

    close(p->theirs);
    p->theirs = -1;
    UNTIL(atomic_load(&p->events) == 1);
}

TEST(hangup, a_short_pause_costs_no_system_call)
{
    unsigned calls;

    sockets_tcp(&hangups.places[0].ours, &hangups.places[0].theirs);
    hangups_registered_place(1, false); /* after it the loop registers nothing of its own */
    loop_runner_turn(hangups.loop);
    calls = fault_calls(FAULT_EPOLL_CTL);
    for (unsigned i = 0; i < 1000; i++) {
        int64_t began_at_ns = clock_now_ns();

        loop_runner_call(hangups.loop, hangups_do_listen, &hangups.places[0]);
        loop_runner_call(hangups.loop, hangups_do_leave, &hangups.places[0]);
        if (clock_now_ns() - began_at_ns >= HANGUP_SETTLE_NS)
            calls = fault_calls(FAULT_EPOLL_CTL); /* the machine was busy: that was no short one */
        ck_assert_uint_eq(fault_calls(FAULT_EPOLL_CTL), calls);
    }
}

TEST(hangup, socket_that_left_its_pause_is_not_reported)
{
    struct place *p = hangups_registered_place(0, false),
                 *last = hangups_registered_place(1, false);

    loop_runner_call(hangups.loop, hangups_do_leave, p);
    hangups_reset(p);
    hangups_reset(last);
    UNTIL(atomic_load(&last->events) == 1);
    ck_assert_uint_eq(atomic_load(&p->events), 0);
    loop_runner_call(hangups.loop, hangups_do_listen, p); /* paused again */
    UNTIL(atomic_load(&p->events) == 1);
}

TEST(hangup, many_resets_at_once_are_all_reported)
{
    for (unsigned i = 0; i < WATCHES; i++)
        hangups_paused(i, false);
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(hangups_registered(&hangups.places[i]));
    loop_runner_call(hangups.loop, hangups_do_reset_all, NULL);
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(atomic_load(&hangups.places[i].events) == 1);
}

TEST(hangup, callback_may_end_the_pauses_of_other_sockets)
{
    unsigned events = 0;

    for (unsigned i = 0; i < WATCHES; i++)
        hangups_paused(i, false)->leave_others = true;
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(hangups_registered(&hangups.places[i]));
    loop_runner_call(hangups.loop, hangups_do_reset_all, NULL);
    UNTIL(!hangups_registered(&hangups.places[WATCHES - 1]));
    loop_runner_turn(hangups.loop);
    for (unsigned i = 0; i < WATCHES; i++)
        events += atomic_load(&hangups.places[i].events);
    ck_assert_uint_eq(events, 1);
}
