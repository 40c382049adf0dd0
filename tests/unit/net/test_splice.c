/* net/splice: when it is chosen, that it changes no byte, and how it falls back to copying. */
#include <errno.h>
#include <sys/socket.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/sockets.h"
#include "support/spliced.h"
#include "support/suite.h"
#include "support/until.h"

/* ---- the choice ---- */

GROUP(choice, spliced_setup, spliced_teardown);

TEST(choice, mode_off_never_splices)
{
    spliced_start(SPLICE_OFF);
    spliced_pass(0, 100000);
    ck_assert_uint_eq(spliced_now(), 0);
}

TEST(choice, mode_on_splices_from_the_first_byte)
{
    spliced_start(SPLICE_ON);
    spliced_pass(0, 10);
    spliced_pass(10, 100000);
    ck_assert_uint_gt(spliced_now(), 0);
    ck_assert_str_eq(probe_events(&spliced.from), "a"); /* nothing passed the pipeline */
    ck_assert_uint_eq(spliced.from.channel.bytes_in, 100010);
    ck_assert_uint_eq(spliced.to.channel.bytes_out, 100010);
}

TEST(choice, mode_auto_copies_small_messages)
{
    spliced_start(SPLICE_AUTO);
    for (size_t i = 0; i < 50; i++)
        spliced_pass(i * 1000, 1000);
    ck_assert_uint_eq(spliced_now(), 0);
}

TEST(choice, mode_auto_splices_after_two_large_reads_and_copies_after_two_small_reads)
{
    size_t at = 0;
    unsigned calls;

    spliced_start(SPLICE_AUTO);
    for (int i = 0; i < SPLICE_AFTER_READS; i++, at += SPLICE_WORTH_BYTES)
        spliced_pass(at, SPLICE_WORTH_BYTES);
    probe_events(&spliced.from);
    ck_assert_uint_eq(spliced_now(), 0);
    spliced_pass(at, SPLICE_WORTH_BYTES);
    at += SPLICE_WORTH_BYTES;
    ck_assert_uint_gt(spliced_now(), 0);
    for (int i = 0; i < 2; i++, at += 100)
        spliced_pass(at, 100);
    probe_events(&spliced.from);
    calls = spliced_now();
    for (int i = 0; i < 20; i++, at += 100)
        spliced_pass(at, 100);
    ck_assert_uint_eq(spliced_now(), calls);
}

static struct handler onlooker;

static const struct handler_ops onlooker_ops = {.name = "onlooker"};

static void add_onlooker(void *arg)
{
    pipeline_add(arg, &onlooker, &onlooker_ops);
}

static void remove_onlooker(void *arg)
{
    pipeline_remove(arg, &onlooker);
}

TEST_EACH(choice, handler_in_either_pipeline_prevents_splicing, 2)
{
    struct pipeline *p = _i ? &spliced.from.channel.pipeline : &spliced.to.channel.pipeline;

    loop_runner_call(spliced.loop, add_onlooker, p);
    spliced_start(SPLICE_ON);
    spliced_pass(0, 100000);
    ck_assert_uint_eq(spliced_now(), 0);
    loop_runner_call(spliced.loop, remove_onlooker, p);
    spliced_pass(100000, 100000);
    ck_assert_uint_gt(spliced_now(), 0);
}

TEST(choice, unix_sockets_are_spliced_too)
{
    spliced_close_pair();
    spliced_open_pair(sockets_unix);
    spliced_start(SPLICE_ON);
    spliced_pass(0, 100000);
    ck_assert_uint_gt(spliced_now(), 0);
    ck_assert_str_eq(probe_events(&spliced.from), "a");
}

static const enum splice_mode modes[] = {SPLICE_AUTO, SPLICE_ON, SPLICE_OFF};

GROUP(bytes, spliced_setup, spliced_teardown);

TEST_EACH(bytes, a_slow_receiver_gets_every_byte_in_order, ARRAY_LEN(modes))
{
    spliced_start(modes[_i]);
    spliced_pass_long();
}

/* ---- falling back ---- */

/* The first splice(2) reads from the source, the second writes to the receiver. */
TEST_EACH(bytes, a_source_or_receiver_that_cannot_be_spliced_is_tried_once_and_nothing_is_lost, 4)
{
    unsigned works = (unsigned)_i / 2;

    fault_plan(FAULT_SPLICE, works, FAULT_ALWAYS, _i % 2 ? EINVAL : EOPNOTSUPP);
    spliced_start(SPLICE_ON);
    spliced_pass_long();
    ck_assert_uint_eq(spliced_now(), works + 1);
}

TEST(bytes, an_interrupted_splice_is_done_again)
{
    fault_plan(FAULT_SPLICE, 0, 2, EINTR);
    spliced_start(SPLICE_ON);
    spliced_pass(0, 50000);
    ck_assert_str_eq(probe_events(&spliced.from), "a");
}

/* ---- urgent data, where splice(2) stops for good ---- */

#define URGENT_BEFORE 300000
#define URGENT_BEHIND 100000

/* With the urgent byte left in its place, or taken out by the kernel. */
static void start_with_urgent(int inline_byte)
{
    ck_assert_int_eq(setsockopt(spliced.from.channel.io.fd, SOL_SOCKET, SO_OOBINLINE, &inline_byte,
                                sizeof(inline_byte)),
                     0);
    spliced_start(SPLICE_ON);
}

static void say_urgent(void)
{
    ck_assert_int_eq(send(spliced.from.peer, "!", 1, MSG_OOB), 1);
}

TEST_EACH(bytes, an_end_right_behind_urgent_data_cuts_nothing_off, 2)
{
    start_with_urgent(_i);
    spliced_pass(0, URGENT_BEFORE);
    say_urgent();
    sockets_say_pattern(spliced.from.peer, URGENT_BEFORE, URGENT_BEHIND);
    sockets_end(spliced.from.peer);
    if (_i)
        sockets_hear(spliced.to.peer, "!");
    sockets_hear_pattern(spliced.to.peer, URGENT_BEFORE, URGENT_BEHIND);
    sockets_hear_end(spliced.to.peer);
    ck_assert_uint_eq(spliced.to.channel.bytes_out, URGENT_BEFORE + URGENT_BEHIND + (size_t)_i);
}

TEST_EACH(bytes, bytes_behind_urgent_data_arrive, 2)
{
    start_with_urgent(_i);
    for (size_t at = 0; at < 3 * URGENT_BEHIND; at += URGENT_BEHIND) {
        say_urgent();
        sockets_say_pattern(spliced.from.peer, at, URGENT_BEHIND);
        if (_i)
            sockets_hear(spliced.to.peer, "!");
        sockets_hear_pattern(spliced.to.peer, at, URGENT_BEHIND);
    }
}

TEST_EACH(bytes, urgent_data_alone_keeps_no_loop_busy, 2)
{
    unsigned calls;

    start_with_urgent(_i);
    spliced_pass(0, URGENT_BEFORE);
    say_urgent();
    if (_i)
        sockets_hear(spliced.to.peer, "!");
    PAUSE_MS(20);
    calls = spliced_now();
    PAUSE_MS(200);
    ck_assert_uint_le(spliced_now(), calls + 2); /* without an end it were hundreds */
    spliced_pass(0, URGENT_BEHIND);
}

TEST_EACH(bytes, a_readable_descriptor_that_yields_nothing_is_named_and_closed, ARRAY_LEN(modes))
{
    log_lines_capture(LOG_LEVEL_WARNING);
    fault_plan(FAULT_SPLICE, 0, FAULT_ALWAYS, EAGAIN);
    fault_plan(FAULT_RECV, 0, FAULT_ALWAYS, EAGAIN);
    spliced_start(modes[_i]);
    sockets_say(spliced.from.peer, "never read");
    probe_wait(&spliced.from, PROBE_CLOSED);
    ck_assert_int_eq(spliced.from.error, -EIO);
    EXPECT_LOG_LINES("reads returned nothing", 1);
    EXPECT_LOG_LINES("connection with 127.0.0.1:", 1);
    fault_plan(FAULT_RECV, 0, 0, 0);
    sockets_hear_reset(spliced.from.peer);
}

TEST_EACH(bytes, a_few_reads_of_nothing_close_nothing, ARRAY_LEN(modes))
{
    spliced_start(modes[_i]);
    for (size_t at = 0; at < 100; at += 10) {
        fault_plan(FAULT_SPLICE, 0, 100, EAGAIN);
        fault_plan(FAULT_RECV, 0, 100, EAGAIN);
        sockets_say_pattern(spliced.from.peer, at, 10);
        UNTIL(probe_in(&spliced.from) == at + 10);
    }
    fault_plan(FAULT_SPLICE, 0, 0, 0);
    fault_plan(FAULT_RECV, 0, 0, 0);
    sockets_hear_pattern(spliced.to.peer, 0, 100);
}

/* ---- ends ---- */

TEST(bytes, end_of_file_is_seen_through_a_splice)
{
    spliced_start(SPLICE_ON);
    spliced_pass(0, 50000);
    sockets_end(spliced.from.peer);
    sockets_hear_end(spliced.to.peer);
    ck_assert_str_eq(probe_events(&spliced.from), "ae");
}

TEST(bytes, a_reset_of_the_source_is_told_to_the_source)
{
    spliced_start(SPLICE_ON);
    spliced_pass(0, 50000);
    probe_reset_peer(&spliced.from);
    probe_wait(&spliced.from, PROBE_CLOSED);
    ck_assert_int_eq(spliced.from.error, -ECONNRESET);
}

TEST(bytes, reset_of_the_receiver_is_reported_to_the_receiver)
{
    spliced_start(SPLICE_ON);
    spliced_pass(0, 1000);
    probe_reset_peer(&spliced.to);
    probe_wait(&spliced.to, PROBE_CLOSED);
    ck_assert_int_eq(spliced.to.error, -ECONNRESET);
    sockets_say_pattern(spliced.from.peer, 0, 50000);
    UNTIL(probe_read(&spliced.from) == 0 &&
          probe_saw(&spliced.from, PROBE_READ)); /* copied again, to nobody */
    ck_assert(!probe_saw(&spliced.from, PROBE_CLOSED));
}

TEST(bytes, broken_receiver_drops_the_bytes_in_the_pipe_and_frees_the_pipe)
{
    fault_plan(FAULT_SPLICE, 1, 1, EPIPE);
    spliced_start(SPLICE_ON);
    sockets_say_pattern(spliced.from.peer, 0, 1000);
    probe_wait(&spliced.to, PROBE_BROKEN);
    ck_assert_int_eq(spliced.to.broken, -EPIPE);
    ck_assert_ptr_null(spliced.to.channel.pipe);
    ck_assert(!probe_saw(&spliced.to, PROBE_CLOSED));
}

TEST(bytes, a_reset_that_splice_has_not_reported_is_no_end_of_file)
{
    fault_plan(FAULT_SPLICE, 1, 2, FAULT_RESET_MISSED);
    spliced_start(SPLICE_ON);
    sockets_say_pattern(spliced.from.peer, 0, 1000);
    probe_wait(&spliced.to, PROBE_BROKEN);
    ck_assert_int_eq(spliced.to.broken, -ECONNRESET);
    sockets_end(spliced.to.peer); /* what a read gets after that */
    probe_wait(&spliced.to, PROBE_CLOSED);
    ck_assert_int_eq(spliced.to.error, -ECONNRESET);
}
