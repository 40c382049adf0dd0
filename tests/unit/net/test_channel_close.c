/*
 * net/channel, ended from our side: lingering close, discard, and a reset that overtakes nothing.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_BYTES (8u << 20) /* more than the kernel takes */

static struct loop *loop;
static struct netloop *net;
static struct probe probe;
static int ours, peer;
static unsigned before;

static void setup(void)
{
    loop = loop_runner_create();
    net = probe_net(loop);
    before = process_descriptors();
    sockets_tcp(&ours, &peer);
    probe_init(&probe, net, ours);
    probe_start(&probe);
}

static void teardown(void)
{
    probe_close(&probe);
    if (peer >= 0)
        close(peer);
    ck_assert_uint_eq(process_descriptors(), before);
    loop_runner_destroy(loop);
    netloop_destroy(net);
}

static void end_flush(struct channel *ch)
{
    channel_end(ch, CHANNEL_END_FLUSH);
}

static void end_reset(struct channel *ch)
{
    channel_end(ch, CHANNEL_END_RESET);
}

static void discard(struct channel *ch)
{
    channel_discard(ch, 0);
}

static void reset_peer(void)
{
    sockets_reset(peer);
    peer = -1;
}

static void expect_closed(int error, const char *events)
{
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_str_eq(probe_events(&probe), events);
    ck_assert_int_eq(probe.error, error);
}

/* ---- close ---- */

START_TEST(close_sends_what_waits_and_discards_what_comes)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_flush);
    probe_do(&probe, end_flush);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    sockets_say_pattern(peer, 0, 200000); /* unread input would become a reset */
    sockets_hear_pattern(peer, 0, LONG_BYTES);
    sockets_hear_end(peer);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
    sockets_end(peer);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(probe.error, 0);
    ck_assert(!probe_saw(&probe, PROBE_READ));
    ck_assert(!probe_saw(&probe, PROBE_EOF));
}
END_TEST

START_TEST(close_reads_on_even_if_the_channel_was_paused)
{
    probe_stop(&probe);
    probe_do(&probe, end_flush);
    probe_stop(&probe); /* too late */
    sockets_say(peer, "x");
    sockets_hear_end(peer);
    sockets_end(peer);
    expect_closed(0, "ac");
}
END_TEST

START_TEST(close_after_the_peers_end_of_file_ends_at_once)
{
    sockets_end(peer);
    probe_wait(&probe, PROBE_EOF);
    probe_do(&probe, end_flush);
    sockets_hear_end(peer);
    expect_closed(0, "aec");
}
END_TEST

START_TEST(close_after_our_end_of_file_waits_for_the_peers)
{
    probe_do(&probe, channel_shutdown_write);
    probe_do(&probe, end_flush);
    sockets_hear_end(peer);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
    sockets_end(peer);
    expect_closed(0, "ac");
}
END_TEST

START_TEST(close_before_the_start_lingers_too)
{
    struct probe early;
    int fd, early_peer;

    sockets_tcp(&fd, &early_peer);
    probe_init(&early, net, fd);
    probe_do(&early, end_flush);
    sockets_say(early_peer, "x");
    sockets_hear_end(early_peer);
    sockets_end(early_peer);
    probe_wait(&early, PROBE_CLOSED);
    ck_assert_str_eq(probe_events(&early), "c");
    probe_close(&early);
    close(early_peer);
}
END_TEST

START_TEST(a_reset_while_closing_is_told)
{
    probe_do(&probe, end_flush);
    reset_peer();
    expect_closed(-ECONNRESET, "ac");
}
END_TEST

/* ---- discard ---- */

START_TEST(discarded_input_is_read_and_thrown_away)
{
    probe_stop(&probe);
    sockets_say(peer, "early");
    probe_do(&probe, discard);
    sockets_say_pattern(peer, 0, LONG_BYTES); /* more than fits anywhere unread */
    ck_assert_int_eq(probe_write(&probe, "answer", 6), 0);
    sockets_hear(peer, "answer");
    UNTIL(probe_in(&probe) == 5 + LONG_BYTES);
    ck_assert_str_eq(probe_events(&probe), "a");
}
END_TEST

START_TEST(what_the_peer_has_not_acknowledged_is_counted)
{
    ck_assert_uint_eq(probe_unsent(&probe), 0);
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    ck_assert_uint_gt(probe_unsent(&probe), probe_pending(&probe));
    ck_assert_uint_lt(probe_unsent(&probe), LONG_BYTES);
    sockets_hear_pattern(peer, 0, LONG_BYTES);
    UNTIL(probe_unsent(&probe) == 0);
}
END_TEST

/* ---- reset ---- */

START_TEST(a_reset_with_nothing_on_the_way_is_at_once)
{
    UNTIL(probe_unsent(&probe) == 0);
    probe_do(&probe, end_reset);
    expect_closed(0, "ac");
    sockets_hear_reset(peer);
}
END_TEST

START_TEST(a_reset_comes_behind_what_was_written)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_reset);
    ck_assert(!probe_is(&probe, channel_ended));
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    sockets_say(peer, "x"); /* discarded */
    sockets_hear_pattern(peer, 0, LONG_BYTES);
    probe_wait(&probe, PROBE_CLOSED);
    expect_closed(0, strchr(probe_events(&probe), PROBE_WRITABLE) ? "awc" : "ac");
    sockets_hear_reset(peer);
}
END_TEST

START_TEST(a_reset_after_our_end_of_file_still_is_one)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, channel_shutdown_write);
    probe_do(&probe, end_reset);
    sockets_hear_pattern(peer, 0, LONG_BYTES);
    sockets_hear_reset(peer);
    probe_wait(&probe, PROBE_CLOSED);
}
END_TEST

/* ---- input that is cut ---- */

static void end_of_a_busy_stream(struct channel *ch)
{
    channel_discard(ch, CLOCK_NEVER);
}

START_TEST(input_is_cut_when_bytes_are_unread)
{
    probe_stop(&probe);
    sockets_say(peer, "x");
    probe_do(&probe, discard);
    ck_assert(probe_is(&probe, channel_input_cut));
}
END_TEST

START_TEST(input_is_cut_when_bytes_just_came)
{
    sockets_say(peer, "x");
    UNTIL(probe_read(&probe) == 1);
    probe_do(&probe, end_of_a_busy_stream);
    ck_assert(probe_is(&probe, channel_input_cut));
}
END_TEST

START_TEST(input_is_cut_when_bytes_are_discarded)
{
    probe_do(&probe, discard);
    ck_assert(!probe_is(&probe, channel_input_cut));
    sockets_say(peer, "x");
    UNTIL(probe_is(&probe, channel_input_cut));
}
END_TEST

START_TEST(quiet_input_is_not_cut_nor_is_one_that_has_ended)
{
    struct probe quiet;
    int fd, quiet_peer;

    sockets_tcp(&fd, &quiet_peer);
    probe_init(&quiet, net, fd);
    probe_start(&quiet);
    sockets_say(quiet_peer, "x");
    UNTIL(probe_read(&quiet) == 1);
    probe_do(&quiet, discard);
    ck_assert(!probe_is(&quiet, channel_input_cut));
    probe_close(&quiet);
    close(quiet_peer);
    sockets_say(peer, "x");
    sockets_end(peer);
    probe_wait(&probe, PROBE_EOF);
    probe_do(&probe, end_of_a_busy_stream);
    ck_assert(!probe_is(&probe, channel_input_cut));
}
END_TEST

static void keep(struct channel *ch)
{
    channel_keep(ch, true);
}

START_TEST(input_is_cut_when_a_handler_keeps_some)
{
    probe_do(&probe, keep);
    probe_do(&probe, discard);
    ck_assert(probe_is(&probe, channel_input_cut));
}
END_TEST

static void stop_by_clock(struct channel *ch)
{
    channel_stop_reading(ch, CHANNEL_STOP_CLOCK);
}

START_TEST(input_is_cut_when_a_clock_stopped_it)
{
    probe_do(&probe, stop_by_clock);
    probe_do(&probe, discard);
    ck_assert(probe_is(&probe, channel_input_cut));
}
END_TEST

START_TEST(input_of_which_nothing_ever_came_is_not_cut)
{
    probe_do(&probe, end_of_a_busy_stream);
    ck_assert(!probe_is(&probe, channel_input_cut));
}
END_TEST

START_TEST(a_reset_cuts_quiet_input_but_not_one_that_has_ended)
{
    struct probe done;
    int fd, done_peer;

    sockets_tcp(&fd, &done_peer);
    probe_init(&done, net, fd);
    probe_start(&done);
    sockets_end(done_peer);
    probe_wait(&done, PROBE_EOF);
    probe_do(&done, end_reset);
    probe_do(&probe, end_reset);
    ck_assert(!probe_is(&done, channel_input_cut));
    ck_assert(probe_is(&probe, channel_input_cut));
    probe_close(&done);
    close(done_peer);
}
END_TEST

START_TEST(a_reset_that_waits_cuts_quiet_input)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, end_reset);
    ck_assert(!probe_is(&probe, channel_ended));
    ck_assert(probe_is(&probe, channel_input_cut));
}
END_TEST

/* ---- a reset of a channel that is not read ---- */

START_TEST(a_reset_after_the_end_of_file_is_noticed)
{
    sockets_end(peer);
    probe_wait(&probe, PROBE_EOF);
    PAUSE_MS(5 * HANGUP_SETTLE_NS / NS_PER_MS);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED)); /* an end of file is none */
    reset_peer();
    probe_wait(&probe, PROBE_CLOSED);
    expect_closed(0, "aebc"); /* it had ended: all that it sent was read */
    ck_assert_int_eq(probe.broken, -EPIPE);
}
END_TEST

START_TEST(a_reset_of_a_paused_channel_loses_nothing_that_came_before)
{
    probe_stop(&probe);
    sockets_say(peer, "last words");
    reset_peer();
    probe_wait(&probe, PROBE_BROKEN);
    ck_assert_str_eq(probe_events(&probe), "ab");
    probe_read_on(&probe);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_uint_eq(probe_read(&probe), 10);
    ck_assert_int_eq(probe.error, -ECONNRESET);
}
END_TEST

START_TEST(a_reset_of_a_channel_that_was_not_started_is_noticed)
{
    struct probe early;
    int fd, early_peer;

    sockets_tcp(&fd, &early_peer);
    probe_init(&early, net, fd);
    probe_do(&early, channel_notice_reset);
    PAUSE_MS(_i == 0 ? 0 : 5 * HANGUP_SETTLE_NS / NS_PER_MS); /* not registered yet; registered */
    ck_assert(!probe_saw(&early, PROBE_CLOSED));
    sockets_reset(early_peer);
    probe_wait(&early, PROBE_CLOSED);
    ck_assert_int_eq(early.error, -ECONNRESET);
    probe_close(&early);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net/channel_close");
    TCase *tc = suite_group(suite, "close");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, close_sends_what_waits_and_discards_what_comes);
    tcase_add_test(tc, close_reads_on_even_if_the_channel_was_paused);
    tcase_add_test(tc, close_after_the_peers_end_of_file_ends_at_once);
    tcase_add_test(tc, close_after_our_end_of_file_waits_for_the_peers);
    tcase_add_test(tc, close_before_the_start_lingers_too);
    tcase_add_test(tc, a_reset_while_closing_is_told);
    tcase_add_test(tc, discarded_input_is_read_and_thrown_away);
    tcase_add_test(tc, what_the_peer_has_not_acknowledged_is_counted);
    tcase_add_test(tc, a_reset_with_nothing_on_the_way_is_at_once);
    tcase_add_test(tc, a_reset_comes_behind_what_was_written);
    tcase_add_test(tc, a_reset_after_our_end_of_file_still_is_one);
    tcase_add_test(tc, input_is_cut_when_a_handler_keeps_some);
    tcase_add_test(tc, input_is_cut_when_a_clock_stopped_it);
    tcase_add_test(tc, input_of_which_nothing_ever_came_is_not_cut);
    tcase_add_test(tc, a_reset_cuts_quiet_input_but_not_one_that_has_ended);
    tcase_add_test(tc, a_reset_that_waits_cuts_quiet_input);
    tcase_add_test(tc, input_is_cut_when_bytes_are_unread);
    tcase_add_test(tc, input_is_cut_when_bytes_just_came);
    tcase_add_test(tc, input_is_cut_when_bytes_are_discarded);
    tcase_add_test(tc, quiet_input_is_not_cut_nor_is_one_that_has_ended);
    tcase_add_test(tc, a_reset_after_the_end_of_file_is_noticed);
    tcase_add_test(tc, a_reset_of_a_paused_channel_loses_nothing_that_came_before);
    tcase_add_loop_test(tc, a_reset_of_a_channel_that_was_not_started_is_noticed, 0, 2);
    return suite_run(suite);
}
