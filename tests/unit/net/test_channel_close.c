/*
 * net/channel, ended from our side: lingering close, discard, and a reset that overtakes nothing.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "net/channel_internal.h"
#include "support/probe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_BYTES (8u << 20) /* more than the kernel takes */

static void discard(struct channel *ch)
{
    channel_discard(ch, 0);
}

/* ---- close ---- */

GROUP(close, probe_connect_and_start, probe_disconnect);

TEST(close, close_flushes_buffered_bytes_and_discards_input)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_end(&probe, CHANNEL_END_FLUSH);
    probe_end(&probe, CHANNEL_END_FLUSH);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    sockets_say_pattern(probe.peer, 0, 200000); /* unread input would become a reset */
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    sockets_hear_end(probe.peer);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(probe.error, 0);
    ck_assert(!probe_saw(&probe, PROBE_READ));
    ck_assert(!probe_saw(&probe, PROBE_EOF));
}

TEST(close, close_reads_on_even_if_the_channel_was_paused)
{
    probe_stop(&probe);
    probe_end(&probe, CHANNEL_END_FLUSH);
    probe_stop(&probe); /* too late */
    sockets_say(probe.peer, "x");
    sockets_hear_end(probe.peer);
    sockets_end(probe.peer);
    probe_expect_closed(&probe, 0, "ac");
}

TEST(close, close_after_the_peers_end_of_file_ends_at_once)
{
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    probe_end(&probe, CHANNEL_END_FLUSH);
    sockets_hear_end(probe.peer);
    probe_expect_closed(&probe, 0, "aec");
}

TEST(close, close_after_our_end_of_file_waits_for_the_peers)
{
    probe_do(&probe, channel_shutdown_write);
    probe_end(&probe, CHANNEL_END_FLUSH);
    sockets_hear_end(probe.peer);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
    sockets_end(probe.peer);
    probe_expect_closed(&probe, 0, "ac");
}

TEST(close, close_before_the_start_lingers)
{
    struct probe early;

    probe_init(&early, probe.net, sockets_tcp);
    probe_end(&early, CHANNEL_END_FLUSH);
    sockets_say(early.peer, "x");
    sockets_hear_end(early.peer);
    sockets_end(early.peer);
    probe_wait(&early, PROBE_CLOSED);
    ck_assert_str_eq(probe_events(&early), "c");
    probe_close(&early);
}

TEST(close, reset_during_close_is_reported)
{
    probe_end(&probe, CHANNEL_END_FLUSH);
    probe_reset_peer(&probe);
    probe_expect_closed(&probe, -ECONNRESET, "ac");
}

/* ---- discard ---- */

TEST(close, discarded_input_is_read_and_dropped)
{
    probe_stop(&probe);
    sockets_say(probe.peer, "early");
    probe_do(&probe, discard);
    sockets_say_pattern(probe.peer, 0, LONG_BYTES); /* more than fits anywhere unread */
    ck_assert_int_eq(probe_write(&probe, "answer", 6), 0);
    sockets_hear(probe.peer, "answer");
    UNTIL(probe_in(&probe) == 5 + LONG_BYTES);
    ck_assert_str_eq(probe_events(&probe), "a");
}

TEST(close, unsent_bytes_include_bytes_not_acknowledged_by_the_peer)
{
    ck_assert_uint_eq(probe_unsent(&probe), 0);
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    ck_assert_uint_gt(probe_unsent(&probe), probe_pending(&probe));
    ck_assert_uint_lt(probe_unsent(&probe), LONG_BYTES);
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    UNTIL(probe_unsent(&probe) == 0);
}

/* ---- reset ---- */

TEST(close, reset_without_unsent_bytes_is_immediate)
{
    UNTIL(probe_unsent(&probe) == 0);
    probe_end(&probe, CHANNEL_END_RESET);
    probe_expect_closed(&probe, 0, "ac");
    sockets_hear_reset(probe.peer);
}

TEST(close, reset_follows_the_bytes_written_before)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_end(&probe, CHANNEL_END_RESET);
    ck_assert(!probe_is(&probe, channel_ended));
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    sockets_say(probe.peer, "x"); /* discarded */
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    probe_wait(&probe, PROBE_CLOSED);
    probe_expect_closed(&probe, 0, strchr(probe_events(&probe), PROBE_WRITABLE) ? "awc" : "ac");
    sockets_hear_reset(probe.peer);
}

TEST(close, reset_after_our_end_of_file_is_sent_as_a_reset)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, channel_shutdown_write);
    probe_end(&probe, CHANNEL_END_RESET);
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    sockets_hear_reset(probe.peer);
    probe_wait(&probe, PROBE_CLOSED);
}

/* ---- input that is cut ---- */

static void end_of_a_busy_stream(struct channel *ch)
{
    channel_discard(ch, CLOCK_NEVER);
}

TEST(close, input_is_cut_when_bytes_are_unread)
{
    probe_stop(&probe);
    sockets_say(probe.peer, "x");
    probe_do(&probe, discard);
    ck_assert(probe_is(&probe, channel_input_cut));
}

TEST(close, input_is_cut_when_the_stream_was_just_read)
{
    sockets_say(probe.peer, "x");
    UNTIL(probe_read(&probe) == 1);
    probe_do(&probe, end_of_a_busy_stream);
    ck_assert(probe_is(&probe, channel_input_cut));
}

TEST(close, input_is_cut_when_bytes_are_discarded)
{
    probe_do(&probe, discard);
    ck_assert(!probe_is(&probe, channel_input_cut));
    sockets_say(probe.peer, "x");
    UNTIL(probe_is(&probe, channel_input_cut));
}

TEST(close, input_is_not_cut_when_quiet_or_ended)
{
    struct probe quiet;

    probe_init(&quiet, probe.net, sockets_tcp);
    probe_start(&quiet);
    sockets_say(quiet.peer, "x");
    UNTIL(probe_read(&quiet) == 1);
    probe_do(&quiet, discard);
    ck_assert(!probe_is(&quiet, channel_input_cut));
    probe_close(&quiet);
    sockets_say(probe.peer, "x");
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    probe_do(&probe, end_of_a_busy_stream);
    ck_assert(!probe_is(&probe, channel_input_cut));
}

TEST_EACH(close, input_is_cut_when_a_handler_holds_bytes_or_a_timer_paused_it, 2)
{
    if (_i == 0)
        probe_set_input_pending(&probe, true);
    else
        probe_stop_for(&probe, CHANNEL_STOP_DELAY);
    probe_do(&probe, discard);
    ck_assert(probe_is(&probe, channel_input_cut));
}

TEST(close, input_without_any_bytes_read_is_not_cut)
{
    probe_do(&probe, end_of_a_busy_stream);
    ck_assert(!probe_is(&probe, channel_input_cut));
}

TEST(close, reset_cuts_quiet_input_but_not_ended_input)
{
    struct probe done;

    probe_init(&done, probe.net, sockets_tcp);
    probe_start(&done);
    sockets_end(done.peer);
    probe_wait(&done, PROBE_EOF);
    probe_end(&done, CHANNEL_END_RESET);
    probe_end(&probe, CHANNEL_END_RESET);
    ck_assert(!probe_is(&done, channel_input_cut));
    ck_assert(probe_is(&probe, channel_input_cut));
    probe_close(&done);
}

TEST(close, delayed_reset_cuts_quiet_input)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_end(&probe, CHANNEL_END_RESET);
    ck_assert(!probe_is(&probe, channel_ended));
    ck_assert(probe_is(&probe, channel_input_cut));
}

/* ---- a reset of a channel that is not read ---- */

TEST(close, a_reset_after_the_end_of_file_is_noticed)
{
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    PAUSE_MS(5 * HANGUP_SETTLE_NS / NS_PER_MS);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED)); /* an end of file is none */
    probe_reset_peer(&probe);
    probe_wait(&probe, PROBE_CLOSED);
    probe_expect_closed(&probe, 0, "aebc"); /* it had ended: all that it sent was read */
    ck_assert_int_eq(probe.broken, -EPIPE);
}

TEST(close, reset_of_a_paused_channel_loses_no_bytes_received_before)
{
    probe_stop(&probe);
    sockets_say(probe.peer, "last words");
    probe_reset_peer(&probe);
    probe_wait(&probe, PROBE_BROKEN);
    ck_assert_str_eq(probe_events(&probe), "ab");
    probe_read_on(&probe);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_uint_eq(probe_read(&probe), 10);
    ck_assert_int_eq(probe.error, -ECONNRESET);
}

TEST_EACH(close, a_reset_of_a_channel_that_was_not_started_is_noticed, 2)
{
    struct probe early;

    probe_init(&early, probe.net, sockets_tcp);
    probe_do(&early, channel_notice_reset);
    PAUSE_MS(_i == 0 ? 0 : 5 * HANGUP_SETTLE_NS / NS_PER_MS); /* not registered yet; registered */
    ck_assert(!probe_saw(&early, PROBE_CLOSED));
    probe_reset_peer(&early);
    probe_wait(&early, PROBE_CLOSED);
    ck_assert_int_eq(early.error, -ECONNRESET);
    probe_close(&early);
}

/* ---- phases ---- */

GROUP(phases, NULL, NULL);

TEST_EACH_ABORTS(phases, phase_is_not_entered_twice, CHANNEL_ABORTED + 1)
{
    struct channel ch = {.phase = (uint8_t)_i};

    channel_enter(&ch, (enum channel_phase)_i);
}

TEST_EACH_ABORTS(phases, earlier_phase_is_not_entered, CHANNEL_ABORTED)
{
    struct channel ch = {.phase = (uint8_t)(_i + 1)};

    channel_enter(&ch, (enum channel_phase)_i);
}

TEST_ABORTS(phases, closed_channel_is_not_aborted)
{
    struct channel ch = {.phase = CHANNEL_CLOSED};

    channel_enter(&ch, CHANNEL_ABORTED);
}
