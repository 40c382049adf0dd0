/*
 * engine/ready: the order in which callbacks run, and what is forgotten when a watcher is stopped.
 */
#include <unistd.h>

#include "engine/ready.h"
#include "support/suite.h"

#define PIPES 10

static struct ev_loop *ev;
static int fds[PIPES][2];
static struct ev_io io[PIPES];
static char calls[100]; /* the digit of each watcher whose turn it was */
static unsigned n_calls;
static struct ev_io *to_stop, *to_start; /* by the first that is called */

static void on_ready(struct ev_loop *l, struct ev_io *w, int revents)
{
    if (!ready_in_order(l, w, revents))
        return;
    ck_assert_int_eq(revents, EV_READ);
    calls[n_calls++] = (char)('0' + (w - io));
    if (to_stop)
        ready_stop(l, to_stop);
    if (to_start)
        ev_io_start(l, to_start);
    to_stop = to_start = NULL;
}

static void setup(void)
{
    ev = ev_loop_new(EVBACKEND_EPOLL);
    ck_assert_ptr_nonnull(ev);
    for (int i = 0; i < PIPES; i++) {
        ck_assert_int_eq(pipe(fds[i]), 0);
        ev_io_init(&io[i], on_ready, fds[i][0], EV_READ);
        ev_io_start(ev, &io[i]);
    }
    ev_run(ev, EVRUN_NOWAIT); /* they are registered */
}

static void teardown(void)
{
    ev_loop_destroy(ev);
    for (int i = 0; i < PIPES; i++) {
        close(fds[i][0]);
        close(fds[i][1]);
    }
}

/* Make these readable, one after the other. */
static void make_ready(const char *which)
{
    for (; *which; which++)
        ck_assert_int_eq(write(fds[*which - '0'][1], "x", 1), 1);
}

static void expect_calls(const char *which)
{
    n_calls = 0;
    ev_run(ev, EVRUN_NOWAIT);
    calls[n_calls] = '\0';
    ck_assert_str_eq(calls, which);
}

/*
 * Poll, expect the turns of these, and take their bytes; epoll keeps their old places until it has
 * found them empty.
 */
static void expect(const char *which)
{
    char byte;

    expect_calls(which);
    for (; *which; which++)
        ck_assert_int_eq(read(fds[*which - '0'][0], &byte, 1), 1);
}

GROUP(order, setup, teardown);

TEST(order, callbacks_run_in_the_order_of_events)
{
    make_ready("3170952");
    expect("3170952");
    expect("");
    make_ready("0123456789");
    expect("0123456789");
    expect("");
}

TEST(order, watcher_stopped_before_its_callback_is_not_called)
{
    make_ready("12345");
    to_stop = &io[3];
    expect("1245");
    expect("");
}

TEST(order, watcher_stopped_and_started_keeps_its_order_in_the_next_poll)
{
    make_ready("12345");
    to_stop = to_start = &io[3];
    expect("1245");
    make_ready("76");
    expect("376"); /* it was ready before these */
    expect("");
    make_ready("6314");
    expect("6314");
}

TEST(order, watcher_that_stops_itself_is_called_once)
{
    make_ready("123");
    to_stop = &io[1];
    expect("123");
    make_ready("21");
    expect("2");
    ev_io_start(ev, &io[1]);
    make_ready("0");
    ev_run(ev, EVRUN_NOWAIT); /* it is registered again */
    ck_assert_int_eq(ev_priority(&io[1]), READY_FIRST);
}

TEST(order, watcher_that_cannot_be_registered_is_called_in_order)
{
    ev_feed_event(ev, &io[2], EV_READ);
    ev_feed_event(ev, &io[2], EV_READ); /* twice is once */
    ev_feed_event(ev, &io[1], EV_READ);
    n_calls = 0;
    ev_invoke_pending(ev);
    ck_assert_uint_eq(n_calls, 2);
    ck_assert_int_eq(calls[0], '2');
    ck_assert_int_eq(calls[1], '1');
    ck_assert_uint_eq(ev_pending_count(ev), 0);
}
