/* net/channel: reading, writing, water marks. How it ends is in test_channel_end.c. */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "net/sock_options.h"
#include "support/fault.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

/* The probe's bytes are those of the pattern from 0 on. */
static void check_read(void *arg)
{
    const struct buffer *b = &probe.read;
    uint8_t expected[4096];

    (void)arg;
    for (size_t at = 0; at < buffer_bytes(b); at += sizeof(expected)) {
        size_t left = buffer_bytes(b) - at, n = left < sizeof(expected) ? left : sizeof(expected);

        sockets_pattern(expected, at, n);
        ck_assert_mem_eq(buffer_front(b) + at, expected, n);
    }
}

GROUP(channel, probe_connect, probe_disconnect);

TEST(channel, nothing_is_read_before_the_start)
{
    sockets_say(probe.peer, "early");
    PAUSE_MS(30);
    ck_assert_str_eq(probe_events(&probe), "");
    probe_start(&probe);
    probe_wait(&probe, PROBE_READ);
    ck_assert_str_eq(probe_events(&probe), "ar");
    ck_assert_uint_eq(probe_read(&probe), 5);
}

TEST(channel, a_short_message_is_one_read)
{
    probe_start(&probe);
    sockets_say(probe.peer, "ten bytes.");
    UNTIL(probe_read(&probe) == 10);
    ck_assert_uint_eq(probe.n_reads, 1);
    ck_assert_uint_eq(probe.channel.bytes_in, 10);
}

TEST(channel, a_long_stream_arrives_complete_and_in_order)
{
    probe_start(&probe);
    sockets_say_pattern(probe.peer, 0, 5000000);
    UNTIL(probe_read(&probe) == 5000000);
    loop_runner_call(probe.net->loop, check_read, NULL);
}

TEST(channel, write_is_sent_at_once_and_nothing_is_buffered)
{
    probe_start(&probe);
    ck_assert_int_eq(probe_write(&probe, "hello", 5), 0);
    ck_assert_uint_eq(probe_pending(&probe), 0);
    ck_assert_ptr_null(probe.channel.out.data);
    sockets_hear(probe.peer, "hello");
    ck_assert_uint_eq(probe.channel.bytes_out, 5);
}

static void leave_nodelay(void *arg)
{
    const struct sock_options *o = arg;

    channel_nodelay(&probe.channel, o);
}

/* Is TCP_NODELAY set after ${n} sends, when that is left to the channel? */
static bool has_nodelay(unsigned n, struct sock_options o)
{
    probe_start(&probe);
    loop_runner_call(probe.net->loop, leave_nodelay, &o);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(probe_write(&probe, "hello", 5), 0);
    return sockets_option(probe.channel.io.fd, IPPROTO_TCP, TCP_NODELAY) != 0;
}

TEST(channel, nodelay_is_not_set_for_one_send)
{
    ck_assert(!has_nodelay(1, (struct sock_options){.nodelay = true, .nodelay_later = true}));
}

TEST(channel, nodelay_is_set_before_the_second_send)
{
    ck_assert(has_nodelay(2, (struct sock_options){.nodelay = true, .nodelay_later = true}));
}

TEST(channel, nodelay_is_not_set_if_it_is_off)
{
    ck_assert(!has_nodelay(2, (struct sock_options){.nodelay_later = true}));
}

TEST(channel, write_of_no_bytes_is_allowed)
{
    probe_start(&probe);
    ck_assert_int_eq(probe_write(&probe, "", 0), 0);
    ck_assert_uint_eq(probe_pending(&probe), 0);
    sockets_hear_nothing(probe.peer);
}

static void write_corked(void *arg)
{
    struct channel *ch = &probe.channel;
    unsigned *sends = arg;

    *sends = fault_calls(FAULT_SEND);
    channel_cork(ch);
    ck_assert_int_eq(channel_write(ch, "to", 2), 0);
    ck_assert_int_eq(channel_write(ch, "gether", 6), 0);
    channel_shutdown_write(ch);
    ck_assert_uint_eq(fault_calls(FAULT_SEND), *sends);
    channel_uncork(ch);
    ck_assert_uint_eq(channel_pending_bytes(ch), 0);
    *sends = fault_calls(FAULT_SEND) - *sends;
    channel_cork(ch); /* nothing more can be sent, and nothing is */
    channel_uncork(ch);
}

TEST(channel, corked_writes_are_sent_in_one_call_before_the_end_of_file)
{
    unsigned sends;

    probe_start(&probe);
    loop_runner_call(probe.net->loop, write_corked, &sends);
    ck_assert_uint_eq(sends, 1);
    sockets_hear(probe.peer, "together");
    sockets_hear_end(probe.peer);
}

TEST(channel, bytes_that_the_kernel_does_not_take_are_buffered_and_sent_later)
{
    const size_t len = 8 << 20;

    probe_start(&probe);
    ck_assert_int_eq(probe_write_pattern(&probe, 0, len), 0);
    ck_assert_uint_gt(probe_pending(&probe), 0);
    ck_assert_int_eq(probe_write_pattern(&probe, len, 1000), 0);
    sockets_hear_pattern(probe.peer, 0, len + 1000);
    UNTIL(probe_pending(&probe) == 0);
    ck_assert_uint_eq(probe.channel.bytes_out, len + 1000);
    ck_assert_ptr_null(probe.channel.out.data); /* an idle channel owns no buffer */
}

TEST(channel, idle_channel_does_not_watch_for_writability)
{
    struct loop_stats was, is;

    probe_start(&probe);
    ck_assert_int_eq(probe_write(&probe, "x", 1), 0);
    was = loop_runner_stats(probe.net->loop);
    PAUSE_MS(100);
    is = loop_runner_stats(probe.net->loop);
    ck_assert_uint_le(is.turns - was.turns, 3);
}

/* Fill the kernel's buffers, so that from here on every byte is kept. */
static size_t fill_kernel(void)
{
    size_t sent = 0;

    while (probe_pending(&probe) == 0) {
        ck_assert_int_eq(probe_write_pattern(&probe, sent, 1000), 0);
        sent += 1000;
    }
    return sent;
}

TEST(channel, above_the_high_water_mark_a_channel_is_unwritable)
{
    size_t sent;

    probe_start_over(sockets_unix_small);
    sent = fill_kernel();
    while (probe_pending(&probe) + 1000 <= CHANNEL_HIGH_BYTES) {
        ck_assert_int_eq(probe_write_pattern(&probe, sent, 1000), 0);
        sent += 1000;
        ck_assert(probe_is(&probe, channel_writable));
    }
    ck_assert_int_eq(probe_write_pattern(&probe, sent, CHANNEL_HIGH_BYTES - probe_pending(&probe)),
                     0);
    ck_assert(probe_is(&probe, channel_writable)); /* the mark itself is not above it */
    ck_assert_uint_eq(probe_pending(&probe), CHANNEL_HIGH_BYTES);
    ck_assert_int_eq(probe_write(&probe, "x", 1), 0);
    ck_assert(!probe_is(&probe, channel_writable));
    ck_assert_int_eq(probe_write(&probe, "x", 1), 0); /* still taken */
    ck_assert(!probe_saw(&probe, PROBE_WRITABLE));
}

static unsigned times_writable;

static void count_writable(struct probe *p)
{
    (void)p;
    times_writable++;
}

TEST(channel, below_the_low_water_mark_the_channel_is_writable_and_notifies_once)
{
    size_t sent, heard = 0;

    probe_start_over(sockets_unix_small);
    probe.on_writable = count_writable;
    sent = fill_kernel();
    ck_assert_int_eq(probe_write_pattern(&probe, sent, 2 * CHANNEL_HIGH_BYTES), 0);
    sent += 2 * CHANNEL_HIGH_BYTES;
    ck_assert(!probe_is(&probe, channel_writable));
    while (heard < sent) {
        size_t n = sent - heard < 512 ? sent - heard : 512;

        ck_assert(probe_pending(&probe) < CHANNEL_LOW_BYTES || !probe_is(&probe, channel_writable));
        sockets_hear_pattern(probe.peer, heard, n);
        heard += n;
    }
    UNTIL(probe_pending(&probe) == 0);
    ck_assert(probe_is(&probe, channel_writable));
    ck_assert_str_eq(probe_events(&probe), "aw");
    ck_assert_uint_eq(times_writable, 1);
}

TEST(channel, buffer_drained_below_the_high_water_mark_makes_no_callback)
{
    size_t sent;

    probe_start_over(sockets_unix_small);
    sent = fill_kernel();
    sockets_hear_pattern(probe.peer, 0, sent);
    UNTIL(probe_pending(&probe) == 0);
    ck_assert_str_eq(probe_events(&probe), "a");
}

TEST(channel, a_paused_channel_reads_nothing_until_it_is_resumed)
{
    probe_start(&probe);
    probe_stop(&probe);
    probe_stop(&probe);
    sockets_say(probe.peer, "hello");
    sockets_end(probe.peer);
    PAUSE_MS(50);
    ck_assert_str_eq(probe_events(&probe), "a");
    probe_read_on(&probe);
    probe_read_on(&probe);
    probe_wait(&probe, PROBE_EOF);
    ck_assert_str_eq(probe_events(&probe), "are");
    ck_assert_uint_eq(probe_read(&probe), 5);
}

static void pause_itself(struct probe *p)
{
    channel_stop_reading(&p->channel, CHANNEL_STOP_RECEIVER);
}

TEST(channel, a_pause_in_a_read_ends_the_burst)
{
    probe.on_read = pause_itself;
    sockets_say_pattern(probe.peer, 0, 1000000);
    probe_start(&probe);
    probe_wait(&probe, PROBE_READ);
    PAUSE_MS(50);
    ck_assert_uint_le(probe_read(&probe), NETLOOP_SCRATCH_BYTES);
    ck_assert_uint_eq(probe.n_reads, 1);
}

TEST(channel, a_paused_channel_still_sends)
{
    size_t sent;

    probe_start_over(sockets_unix_small);
    probe_stop(&probe);
    sent = fill_kernel();
    sockets_hear_pattern(probe.peer, 0, sent);
    UNTIL(probe_pending(&probe) == 0);
}

TEST(channel, writing_comes_before_reading_in_one_event)
{
    struct tasks_block block;
    size_t sent = 0, on_the_way;

    probe_start(&probe);
    for (; probe_is(&probe, channel_writable); sent += 60000)
        ck_assert_int_eq(probe_write_pattern(&probe, sent, 60000), 0);
    on_the_way = sent - probe_pending(&probe);
    /* Both come while the loop is blocked: a byte, and room to send. */
    tasks_block_begin(&block, probe.net->loop);
    sockets_say(probe.peer, "x");
    sockets_hear_pattern(probe.peer, 0, on_the_way);
    PAUSE_MS(20);
    tasks_block_end(&block);
    probe_wait(&probe, PROBE_READ);
    ck_assert_str_eq(probe_events(&probe), "awr");
    sockets_hear_pattern(probe.peer, on_the_way, sent - on_the_way);
}

TEST(channel, a_full_duplex_exchange_loses_nothing)
{
    const size_t len = 3000000;

    probe_start(&probe);
    ck_assert_int_eq(probe_write_pattern(&probe, 0, len), 0);
    sockets_say_pattern(probe.peer, 0, len);
    sockets_hear_pattern(probe.peer, 0, len);
    UNTIL(probe_read(&probe) == len);
    loop_runner_call(probe.net->loop, check_read, NULL);
}

/* A full reader must not keep the others of its loop waiting: it gets a few reads an event. */
TEST(channel, a_burst_is_bounded)
{
    struct probe other;

    probe_init(&other, probe.net, sockets_tcp);
    probe_start(&other);
    sockets_say_pattern(probe.peer, 0, 2000000);
    probe_start(&probe);
    sockets_say(other.peer, "x");
    probe_wait(&other, PROBE_READ);
    UNTIL(probe_read(&probe) == 2000000);
    ck_assert_uint_ge(probe.n_reads, 2000000 / NETLOOP_SCRATCH_BYTES);
    probe_close(&other);
}

static void note_last_io(void *arg)
{
    *(int64_t *)arg = probe.channel.last_io_at_ns;
}

static void expect_active_since(int64_t began_at_ns)
{
    int64_t at_ns;

    loop_runner_call(probe.net->loop, note_last_io, &at_ns);
    ck_assert_int_ge(at_ns, began_at_ns - NS_PER_MS);
    ck_assert_int_le(at_ns, clock_now_ns());
}

TEST(channel, activity_is_noted)
{
    int64_t began_at_ns;

    probe_start(&probe);
    PAUSE_MS(20);
    began_at_ns = clock_now_ns();
    sockets_say(probe.peer, "x");
    UNTIL(probe_read(&probe) == 1);
    expect_active_since(began_at_ns);
    PAUSE_MS(20);
    began_at_ns = clock_now_ns();
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    expect_active_since(began_at_ns);
}

TEST(channel, a_unix_socket_passes_a_full_duplex_exchange)
{
    struct probe other;

    probe_init(&other, probe.net, sockets_unix);
    probe_start(&other);
    sockets_say(other.peer, "hello");
    UNTIL(probe_read(&other) == 5);
    ck_assert_int_eq(probe_write_pattern(&other, 0, 1000000), 0);
    sockets_hear_pattern(other.peer, 0, 1000000);
    sockets_end(other.peer);
    probe_wait(&other, PROBE_EOF);
    probe_do(&other, channel_shutdown_write);
    sockets_hear_end(other.peer);
    probe_wait(&other, PROBE_CLOSED);
    ck_assert_int_eq(other.error, 0);
    probe_close(&other);
}
