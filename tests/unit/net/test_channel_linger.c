/*
 * net/channel_linger: how long a channel that ends waits for its peer, and what the peer sees then.
 */
#include <errno.h>

#include "base/clock.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_BYTES (8u << 20) /* more than the kernel takes */

static struct channel_linger_conf linger, linger_other;

static void end_soon(struct channel *ch)
{
    ch->linger_conf = &linger;
    channel_end(ch, CHANNEL_END_FLUSH | CHANNEL_END_BOUNDED);
}

/* Without the total bound. */
static void end_other(struct channel *ch)
{
    ch->linger_conf = &linger_other;
    channel_end(ch, CHANNEL_END_FLUSH);
}

static void end_reset_within(struct channel *ch)
{
    ch->linger_conf = &linger;
    channel_end(ch, CHANNEL_END_RESET);
}

/* The peer's kernel takes no more than that before the peer reads. */
static void few_on_the_way(void)
{
    ck_assert_int_eq(setsockopt(probe.peer, SOL_SOCKET, SO_RCVBUF, &(int){65536}, sizeof(int)), 0);
}

static void end_input(struct channel *ch)
{
    ch->linger_conf = &linger_other;
    channel_end(ch, CHANNEL_END_INPUT_ONLY);
}

GROUP(linger, probe_connect_and_start, probe_disconnect);

TEST(linger, a_silent_peer_that_acknowledged_all_is_closed_without_a_reset)
{
    linger.timeout_ns = 100 * NS_PER_MS;
    ck_assert_int_eq(probe_write(&probe, "bye", 3), 0);
    probe_do(&probe, end_soon);
    sockets_hear(probe.peer, "bye");
    sockets_hear_end(probe.peer);
    probe_expect_closed(&probe, 0, "ac");
    sockets_hear_end(probe.peer); /* still, and not a reset */
}

/* Take all that the kernel still has for the peer; a reset must be behind it. */
static void hear_cut(void)
{
    while (recv(probe.peer, (char[60000]){0}, 60000, 0) > 0)
        ;
    ck_assert_int_eq(errno, ECONNRESET);
}

TEST(linger, a_peer_that_acknowledges_nothing_is_reset)
{
    linger.timeout_ns = 100 * NS_PER_MS;
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_soon);
    probe_expect_closed(&probe, -ETIMEDOUT, "ac");
    hear_cut();
}

TEST(linger, a_peer_that_acknowledges_a_little_again_and_again_is_reset_in_the_end)
{
    linger.max_ns = 500 * NS_PER_MS;
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_soon);
    while (!probe_saw(&probe, PROBE_CLOSED)) {
        ck_assert_int_gt(recv(probe.peer, (char[3000]){0}, 3000, MSG_DONTWAIT), 0);
        PAUSE_MS(10);
    }
    hear_cut();
}

/*
 * All, and end of file, is written; the peer, which has taken as many bytes as are returned, has
 * not acknowledged the rest.
 */
static size_t fill_kernel_to_the_end(void)
{
    size_t heard = 0;

    few_on_the_way();
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, channel_shutdown_write);
    for (; !probe_is(&probe, channel_write_ended); heard += 10000)
        sockets_hear_pattern(probe.peer, heard, 10000);
    ck_assert_uint_gt(probe_unsent(&probe), 0);
    return heard;
}

TEST(linger, a_peer_with_unacknowledged_bytes_before_the_end_of_file_is_reset)
{
    (void)fill_kernel_to_the_end();
    linger = (struct channel_linger_conf){.timeout_ns = 100 * NS_PER_MS};
    probe_do(&probe, end_soon);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(probe.error, -ETIMEDOUT);
    hear_cut();
}

/*
 * Hear ${step} bytes at a time, behind the ${heard} before, for 3 s: longer than the peer may be
 * without progress. The channel must not end meanwhile. Then hear the rest.
 */
static void hear_with_progress(size_t heard, size_t step)
{
    int64_t until_ns = clock_now_ns() + 3 * NS_PER_S;

    for (; clock_now_ns() < until_ns; heard += step) {
        sockets_hear_pattern(probe.peer, heard, step);
        PAUSE_MS(50);
    }
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
    sockets_hear_pattern(probe.peer, heard, LONG_BYTES - heard);
    sockets_hear_end(probe.peer);
}

TEST(linger, acknowledged_bytes_restart_the_linger_timeout)
{
    few_on_the_way();
    linger = (struct channel_linger_conf){.timeout_ns = 2 * NS_PER_S};
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_soon);
    hear_with_progress(0, 50000);
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(probe.error, 0);
}

/* All is in the kernel: no byte is written any more, but the peer acknowledges some. */
TEST(linger, acknowledged_bytes_after_the_last_write_restart_the_linger_timeout)
{
    size_t heard = fill_kernel_to_the_end();

    linger = (struct channel_linger_conf){.timeout_ns = 2 * NS_PER_S};
    probe_do(&probe, end_soon);
    hear_with_progress(heard, 10000);
}

/* As long as the short one took is waited again. */
TEST(linger, each_channel_lingers_for_its_own_timeout)
{
    struct probe patient;
    int64_t began_at_ns, took_ms;

    probe_init(&patient, probe.net, sockets_tcp);
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    ck_assert_int_eq(probe_write_pattern(&patient, 0, LONG_BYTES), 0);
    linger = (struct channel_linger_conf){.timeout_ns = 100 * NS_PER_MS};
    linger_other = (struct channel_linger_conf){.timeout_ns = 3600 * NS_PER_S};
    began_at_ns = clock_now_ns();
    probe_do(&probe, end_soon);
    probe_do(&patient, end_other);
    probe_wait(&probe, PROBE_CLOSED);
    took_ms = since_ms(began_at_ns);
    PAUSE_MS(took_ms);
    ck_assert(!probe_saw(&patient, PROBE_CLOSED));
    probe_close(&patient);
}

TEST(linger, peer_that_owes_only_its_end_of_file_has_a_short_timeout)
{
    struct probe other;

    probe_init(&other, probe.net, sockets_tcp);
    linger = (struct channel_linger_conf){0};
    linger_other = (struct channel_linger_conf){.timeout_ns = 3600 * NS_PER_S};
    probe_do(&probe, end_soon);
    probe_do(&other, end_other);
    probe_wait(&probe, PROBE_CLOSED);
    probe_wait(&other, PROBE_CLOSED);
    ck_assert_int_eq(probe.error, 0);
    ck_assert_int_eq(other.error, 0);
    probe_close(&other);
}

TEST(linger, maximum_linger_time_does_not_apply_without_a_timeout)
{
    linger_other = (struct channel_linger_conf){.max_ns = 50 * NS_PER_MS};
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_other);
    PAUSE_MS(500);
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    sockets_hear_end(probe.peer);
}

/* Nothing waits for its acknowledgement, but our end of file is not sent. */
TEST(linger, end_without_shutdown_write_is_reset_after_the_timeout)
{
    linger_other = (struct channel_linger_conf){.timeout_ns = 100 * NS_PER_MS};
    ck_assert_int_eq(probe_write(&probe, "part", 4), 0);
    sockets_hear(probe.peer, "part");
    probe_do(&probe, end_input);
    probe_expect_closed(&probe, -ETIMEDOUT, "ac");
    sockets_hear_reset(probe.peer);
}

TEST(linger, the_total_bound_begins_once)
{
    linger = (struct channel_linger_conf){.max_ns = 1 * NS_PER_S};
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    for (int64_t began_at_ns = clock_now_ns(); !probe_saw(&probe, PROBE_CLOSED);) {
        ck_assert_int_lt(clock_now_ns() - began_at_ns, UNTIL_LIMIT_NS);
        probe_do(&probe, end_soon);
        PAUSE_MS(200);
    }
    ck_assert_int_eq(probe.error, -ETIMEDOUT);
}

TEST(linger, a_peer_without_progress_is_looked_at_more_and_more_seldom)
{
    uint64_t tasks;

    linger = (struct channel_linger_conf){0};
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_soon);
    tasks = loop_runner_stats(probe.net->loop).tasks_run;
    PAUSE_MS(2000);
    ck_assert_uint_le(loop_runner_stats(probe.net->loop).tasks_run - tasks, 30);
}

TEST(linger, without_linger_limits_the_peer_may_take_any_time)
{
    linger = (struct channel_linger_conf){0};
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_soon);
    PAUSE_MS(500);
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    sockets_hear_end(probe.peer);
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(probe.error, 0);
}

TEST(linger, a_reset_waits_for_the_kernel_also_when_both_directions_have_ended)
{
    size_t heard = fill_kernel_to_the_end();

    probe_end(&probe, CHANNEL_END_RESET);
    sockets_end(probe.peer);
    UNTIL(probe_is(&probe, channel_read_ended));
    ck_assert(!probe_is(&probe, channel_ended));
    sockets_hear_pattern(probe.peer, heard, LONG_BYTES - heard);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(probe.error, 0);
}

/* The other's time begins when the peer of this one has got all. */
TEST(linger, a_reset_that_is_delivered_does_not_wait_like_an_end_of_file)
{
    struct probe other;

    linger = (struct channel_linger_conf){0};
    probe_init(&other, probe.net, sockets_tcp);
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_reset_within);
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    linger_other.timeout_ns = 3 * NS_PER_S;
    probe_do(&other, end_other);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert(!probe_saw(&other, PROBE_CLOSED));
    probe_close(&other);
}
