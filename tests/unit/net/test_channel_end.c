/*
 * net/channel, its ends: half-closed either way, aborted, reset, broken; closed once in each case.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/sock.h"
#include "support/fault.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_BYTES (8u << 20) /* more than the kernel takes */

/* What the kernel says instead of ECONNRESET: a peer that is gone cannot be had on loopback. */
static atomic_int error_said;

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict len)
{
    int rc = (int)syscall(SYS_getsockopt, fd, level, name, value, len);

    if (rc == 0 && level == SOL_SOCKET && name == SO_ERROR && *(int *)value == ECONNRESET &&
        atomic_load(&error_said) != 0)
        *(int *)value = atomic_load(&error_said);
    return rc;
}

GROUP(orderly, probe_connect_and_start, probe_disconnect);

TEST(orderly, bytes_received_before_a_timeout_of_the_connection_are_read_after_a_pause)
{
    atomic_store(&error_said, ETIMEDOUT);
    probe_stop(&probe);
    sockets_say(probe.peer, "the answer");
    probe_reset_peer(&probe);
    probe_wait(&probe, PROBE_BROKEN);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
    probe_read_on(&probe);
    probe_expect_closed(&probe, -ETIMEDOUT, "abrc");
    ck_assert_uint_eq(probe_read(&probe), 10);
    atomic_store(&error_said, 0);
}

/* ---- end of file ---- */

TEST(orderly, channel_with_input_pending_in_a_handler_does_not_end_at_both_ends_of_file)
{
    probe_set_input_pending(&probe, true);
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    probe_do(&probe, channel_shutdown_write);
    sockets_hear_end(probe.peer);
    ck_assert(probe_is(&probe, channel_input_pending));
    ck_assert(!probe_is(&probe, channel_ended));
    probe_set_input_pending(&probe, false);
    probe_expect_closed(&probe, 0, "aec");
}

TEST(orderly, channel_with_input_pending_in_two_handlers_waits_for_both)
{
    probe_set_input_pending(&probe, true);
    probe_set_input_pending(&probe, true);
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    probe_do(&probe, channel_shutdown_write);
    probe_set_input_pending(&probe, false);
    ck_assert(probe_is(&probe, channel_input_pending));
    ck_assert(!probe_is(&probe, channel_ended));
    probe_set_input_pending(&probe, false);
    probe_expect_closed(&probe, 0, "aec");
}

static void discard_and_end(struct channel *ch)
{
    channel_discard(ch, 0);
    channel_shutdown_write(ch);
}

TEST(orderly, discarding_input_clears_input_pending)
{
    probe_set_input_pending(&probe, true);
    probe_do(&probe, discard_and_end);
    ck_assert(!probe_is(&probe, channel_input_pending));
    sockets_end(probe.peer);
    probe_expect_closed(&probe, 0, "ac");
}

TEST(orderly, abort_ends_a_channel_with_input_pending)
{
    probe_set_input_pending(&probe, true);
    probe_abort(&probe, -ECONNABORTED);
    probe_expect_closed(&probe, -ECONNABORTED, "ac");
    sockets_hear_reset(probe.peer);
}

TEST(orderly, after_the_peers_end_of_file_we_can_still_send)
{
    sockets_say(probe.peer, "last words");
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    ck_assert_str_eq(probe_events(&probe), "are"); /* the data came first */
    ck_assert_uint_eq(probe_read(&probe), 10);
    ck_assert(probe_is(&probe, channel_read_ended));
    ck_assert(!probe_is(&probe, channel_ended));
    ck_assert_int_eq(probe_write(&probe, "answer", 6), 0);
    sockets_hear(probe.peer, "answer");
    probe_do(&probe, channel_shutdown_write);
    sockets_hear_end(probe.peer);
    probe_expect_closed(&probe, 0, "arec");
}

TEST(orderly, after_our_end_of_file_the_peer_can_still_send)
{
    probe_do(&probe, channel_shutdown_write);
    sockets_hear_end(probe.peer);
    ck_assert(probe_is(&probe, channel_write_ended));
    ck_assert(!probe_is(&probe, channel_ended));
    sockets_say(probe.peer, "still here");
    UNTIL(probe_read(&probe) == 10);
    close(probe.peer);
    probe.peer = -1;
    probe_expect_closed(&probe, 0, "arec");
}

TEST(orderly, the_peers_end_of_file_does_not_make_the_loop_spin)
{
    struct loop_stats was, is;

    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    was = loop_runner_stats(probe.net->loop);
    PAUSE_MS(100);
    is = loop_runner_stats(probe.net->loop);
    ck_assert_uint_le(is.turns - was.turns, 3);
    ck_assert_str_eq(probe_events(&probe), "ae");
}

TEST(orderly, our_end_of_file_follows_buffered_bytes)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    ck_assert_uint_gt(probe_pending(&probe), 0);
    probe_do(&probe, channel_shutdown_write);
    ck_assert(!probe_is(&probe, channel_write_ended));
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    sockets_hear_end(probe.peer);
    ck_assert(probe_is(&probe, channel_write_ended));
}

TEST(orderly, end_of_file_of_the_peer_does_not_cut_off_buffered_bytes)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_do(&probe, channel_shutdown_write);
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
    sockets_hear_pattern(probe.peer, 0, LONG_BYTES);
    sockets_hear_end(probe.peer);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(probe.error, 0);
}

TEST(orderly, our_end_of_file_is_sent_once)
{
    probe_do(&probe, channel_shutdown_write);
    probe_do(&probe, channel_shutdown_write);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    sockets_hear_end(probe.peer);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
}

/* ---- abort ---- */

GROUP(broken, probe_connect_and_start, probe_disconnect);

TEST(broken, abort_sends_a_reset_and_drops_buffered_bytes)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    probe_abort(&probe, -ECANCELED);
    probe_expect_closed(&probe, -ECANCELED, "ac");
    ck_assert_ptr_null(probe.channel.out.data);
    while (recv(probe.peer, (char[60000]){0}, 60000, 0) > 0)
        ;
    ck_assert_int_eq(errno, ECONNRESET);
}

TEST(broken, only_the_first_abort_counts)
{
    probe_abort(&probe, -ECANCELED);
    probe_abort(&probe, -EIO);
    probe_expect_closed(&probe, -ECANCELED, "ac");
    sockets_hear_reset(probe.peer);
}

static void abort_itself(struct probe *p)
{
    channel_abort(&p->channel, -ECANCELED);
    ck_assert(channel_ended(&p->channel));
    ck_assert(strchr(p->events, PROBE_CLOSED) == NULL); /* not inside its own event */
    ck_assert_int_eq(channel_write(&p->channel, "x", 1), -EPIPE);
    channel_stop_reading(&p->channel, CHANNEL_STOP_RECEIVER);
    channel_resume_reading(&p->channel, CHANNEL_STOP_RECEIVER);
    channel_shutdown_write(&p->channel);
    channel_end(&p->channel, CHANNEL_END_FLUSH);
}

TEST(broken, an_ended_channel_takes_every_call_and_does_nothing)
{
    probe.on_read = abort_itself;
    sockets_say(probe.peer, "x");
    probe_expect_closed(&probe, -ECANCELED, "arc");
    sockets_hear_reset(probe.peer);
}

TEST(broken, an_abort_in_a_read_ends_the_burst)
{
    probe_stop(&probe);
    probe.on_read = abort_itself;
    sockets_say_pattern(probe.peer, 0, 1000000);
    probe_read_on(&probe);
    probe_expect_closed(&probe, -ECANCELED, "arc");
    ck_assert_uint_eq(probe.n_reads, 1);
}

/* Two channels that are ready in the same turn; the first one that reads aborts the other. */
static struct probe rivals[2];

static void abort_rival(struct probe *p)
{
    channel_abort(&rivals[p == &rivals[0]].channel, -ECANCELED);
}

static void resume_rivals(void *arg)
{
    (void)arg;
    channel_resume_reading(&rivals[0].channel, CHANNEL_STOP_RECEIVER);
    channel_resume_reading(&rivals[1].channel, CHANNEL_STOP_RECEIVER);
}

TEST(broken, channel_ended_by_another_callback_of_the_turn_is_not_called)
{
    for (int i = 0; i < 2; i++) {
        probe_init(&rivals[i], probe.net, sockets_tcp);
        rivals[i].on_read = abort_rival;
        probe_start(&rivals[i]);
        probe_stop(&rivals[i]);
        sockets_say(rivals[i].peer, "x");
    }
    PAUSE_MS(20);
    loop_runner_call(probe.net->loop, resume_rivals, NULL);
    UNTIL(probe_saw(&rivals[0], PROBE_CLOSED) || probe_saw(&rivals[1], PROBE_CLOSED));
    ck_assert_uint_eq(probe_read(&rivals[0]) + probe_read(&rivals[1]), 1);
    for (int i = 0; i < 2; i++)
        probe_close(&rivals[i]);
}

/* ---- errors ---- */

TEST(broken, reset_of_the_peer_is_reported_as_econnreset)
{
    probe_reset_peer(&probe);
    probe_expect_closed(&probe, -ECONNRESET, "ac");
}

TEST(broken, write_to_a_reset_peer_raises_no_signal_and_is_reported_once)
{
    probe_stop(&probe);
    probe_reset_peer(&probe);
    PAUSE_MS(20);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    probe_wait(&probe, PROBE_BROKEN); /* once: */
    probe_read_on(&probe);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_str_eq(strchr(probe_events(&probe), PROBE_BROKEN) + 1,
                     strrchr(probe_events(&probe), PROBE_BROKEN) + 1);
}

/* The peer takes nothing more; what it sent before is on its way to us. */
TEST(broken, a_write_that_fails_does_not_lose_the_peers_last_bytes)
{
    fault_plan(FAULT_SEND, 2, 1, EPIPE); /* two pass: what the test itself sends */
    probe_stop(&probe);
    sockets_say(probe.peer, "last ");
    sockets_say(probe.peer, "words");
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    sockets_end(probe.peer);
    probe_read_on(&probe);
    probe_expect_closed(&probe, 0, "abrec");
    ck_assert_int_eq(probe.broken, -EPIPE);
    ck_assert_uint_eq(probe_read(&probe), 10);
}

TEST(broken, a_write_that_fails_after_the_peers_end_of_file_ends_the_channel)
{
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    fault_plan(FAULT_SEND, 0, 1, ECONNRESET);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    probe_expect_closed(&probe, 0, "aebc");
    ck_assert_int_eq(probe.broken, -ECONNRESET);
}

TEST(broken, a_write_for_which_the_kernel_has_no_memory_ends_the_channel)
{
    fault_plan(FAULT_SEND, 0, 1, ENOBUFS);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    probe_expect_closed(&probe, -ENOBUFS, "ac");
    sockets_hear_reset(probe.peer);
}

/* Receive, so that there is room to send again, until ${event}. */
static void hear_until(char event)
{
    static uint8_t data[60000];

    while (!probe_saw(&probe, event))
        (void)recv(probe.peer, data, sizeof(data), MSG_DONTWAIT);
}

TEST(broken, error_while_flushing_buffered_bytes_is_reported)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    fault_plan(FAULT_SEND, 0, 1, ENOBUFS);
    hear_until(PROBE_CLOSED);
    ck_assert_int_eq(probe.error, -ENOBUFS);
}

TEST(broken, broken_send_makes_an_unwritable_channel_writable)
{
    ck_assert_int_eq(probe_write_pattern(&probe, 0, LONG_BYTES), 0);
    ck_assert(!probe_is(&probe, channel_writable));
    fault_plan(FAULT_SEND, 0, 1, EPIPE);
    hear_until(PROBE_WRITABLE);
    ck_assert_uint_eq(probe_pending(&probe), 0);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    ck_assert(!probe_saw(&probe, PROBE_CLOSED));
}

TEST(broken, an_interrupted_send_is_done_again)
{
    fault_plan(FAULT_SEND, 0, 3, EINTR);
    ck_assert_int_eq(probe_write(&probe, "hello", 5), 0);
    ck_assert_uint_eq(probe_pending(&probe), 0);
    sockets_hear(probe.peer, "hello");
}

static bool ours_is_reset(void)
{
    return poll(&(struct pollfd){.fd = probe.fd}, 1, 0) > 0;
}

TEST(broken, shutdown_write_after_the_peers_reset_loses_no_bytes_received_before)
{
    probe_stop(&probe);
    sockets_say(probe.peer, "last words");
    probe_reset_peer(&probe);
    UNTIL(ours_is_reset());
    probe_do(&probe, channel_shutdown_write);
    ck_assert_str_eq(probe_events(&probe), "ab");
    ck_assert(!probe_is(&probe, channel_ended));
    probe_read_on(&probe);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_uint_eq(probe_read(&probe), 10);
}

TEST(broken, channel_paused_by_a_timer_does_not_end_at_both_ends_of_file)
{
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    probe_stop_for(&probe, CHANNEL_STOP_DELAY);
    probe_do(&probe, channel_shutdown_write);
    sockets_hear_end(probe.peer);
    ck_assert(!probe_is(&probe, channel_ended));
}

TEST(broken, channel_paused_by_a_timer_does_not_end_at_a_broken_write)
{
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    probe_stop_for(&probe, CHANNEL_STOP_DELAY);
    fault_plan(FAULT_SEND, 0, 1, EPIPE);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    ck_assert(!probe_is(&probe, channel_ended));
}

TEST(broken, immediate_end_with_unread_input_sends_written_bytes_and_end_of_file)
{
    probe_stop(&probe);
    sockets_say(probe.peer, "x");
    UNTIL(sock_has_unread(probe.fd));
    ck_assert_int_eq(probe_write(&probe, "bye", 3), 0);
    probe_end(&probe, CHANNEL_END_NOW);
    probe_expect_closed(&probe, 0, "ac");
    sockets_hear(probe.peer, "bye");
    sockets_hear_end(probe.peer);
}

TEST(broken, an_abort_cuts_the_peers_stream_unless_it_has_ended)
{
    struct probe done;

    probe_init(&done, probe.net, sockets_tcp);
    probe_start(&done);
    sockets_end(done.peer);
    probe_wait(&done, PROBE_EOF);
    probe_abort(&done, -ECANCELED);
    probe_abort(&probe, -ECANCELED);
    probe_wait(&done, PROBE_CLOSED);
    probe_expect_closed(&probe, -ECANCELED, "ac");
    ck_assert(!probe_is(&done, channel_input_cut));
    ck_assert(probe_is(&probe, channel_input_cut));
    probe_close(&done);
}

TEST(broken, close_of_a_channel_that_cannot_send_does_not_wait)
{
    fault_plan(FAULT_SEND, 0, 1, EPIPE);
    ck_assert_int_eq(probe_write(&probe, "x", 1), -EPIPE);
    ck_assert_str_eq(probe_events(&probe), "ab");
    probe_end(&probe, CHANNEL_END_FLUSH);
    probe_expect_closed(&probe, 0, "abc");
}
