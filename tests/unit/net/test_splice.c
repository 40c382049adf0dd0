/* net/splice: when it is chosen, that it changes no byte, and how it falls back to copying. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "net/descriptor_budget.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_BYTES (6u << 20)

static struct loop *loop;
static struct netloop *net;
static struct probe from, to; /* all that `from` reads goes to `to` */
static unsigned before;

/* What a relay does. */
static void copy(struct probe *p)
{
    if (channel_write(&to.channel, buffer_front(&p->read), buffer_bytes(&p->read)) == 0 &&
        !channel_writable(&to.channel))
        channel_stop_reading(&p->channel, CHANNEL_STOP_RECEIVER);
    buffer_clear(&p->read);
}

static void pass_eof(struct probe *p)
{
    (void)p;
    channel_shutdown_write(&to.channel);
}

static void go_on(struct probe *p)
{
    (void)p;
    channel_resume_reading(&from.channel, CHANNEL_STOP_RECEIVER);
}

static void open_pair(void (*sockets)(int *ours, int *theirs))
{
    probe_init(&from, net, sockets);
    probe_init(&to, net, sockets);
    from.on_read = copy;
    from.on_eof = pass_eof;
    to.on_writable = go_on;
}

static void start(enum splice_mode mode)
{
    probe_splice(&from, &to, mode);
    probe_start(&to);
    probe_start(&from);
}

static void close_pair(void)
{
    probe_close(&from);
    probe_close(&to);
}

static void setup(void)
{
    before = process_descriptors();
    loop = loop_runner_create();
    net = probe_net(loop);
    open_pair(sockets_tcp);
}

static void teardown(void)
{
    close_pair();
    loop_runner_stop(loop);
    netloop_destroy(net);
    loop_destroy(loop);
    ck_assert_uint_eq(process_descriptors(), before);
}

static unsigned splices(void)
{
    return fault_calls(FAULT_SPLICE);
}

static void pass(size_t at, size_t len)
{
    sockets_say_pattern(from.peer, at, len);
    sockets_hear_pattern(to.peer, at, len);
}

/* ---- the choice ---- */

GROUP(choice, setup, teardown);

TEST(choice, mode_off_never_splices)
{
    start(SPLICE_OFF);
    pass(0, 100000);
    ck_assert_uint_eq(splices(), 0);
}

TEST(choice, mode_on_splices_from_the_first_byte)
{
    start(SPLICE_ON);
    pass(0, 10);
    pass(10, 100000);
    ck_assert_uint_gt(splices(), 0);
    ck_assert_str_eq(probe_events(&from), "a"); /* nothing passed the pipeline */
    ck_assert_uint_eq(from.channel.bytes_in, 100010);
    ck_assert_uint_eq(to.channel.bytes_out, 100010);
}

TEST(choice, mode_auto_copies_small_messages)
{
    start(SPLICE_AUTO);
    for (size_t i = 0; i < 50; i++)
        pass(i * 1000, 1000);
    ck_assert_uint_eq(splices(), 0);
}

TEST(choice, mode_auto_splices_after_two_large_reads_and_copies_after_two_small_reads)
{
    size_t at = 0;
    unsigned calls;

    start(SPLICE_AUTO);
    for (int i = 0; i < SPLICE_AFTER_READS; i++, at += SPLICE_WORTH_BYTES)
        pass(at, SPLICE_WORTH_BYTES);
    probe_events(&from);
    ck_assert_uint_eq(splices(), 0);
    pass(at, SPLICE_WORTH_BYTES);
    at += SPLICE_WORTH_BYTES;
    ck_assert_uint_gt(splices(), 0);
    for (int i = 0; i < 2; i++, at += 100)
        pass(at, 100);
    probe_events(&from);
    calls = splices();
    for (int i = 0; i < 20; i++, at += 100)
        pass(at, 100);
    ck_assert_uint_eq(splices(), calls);
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
    struct pipeline *p = _i ? &from.channel.pipeline : &to.channel.pipeline;

    loop_runner_call(loop, add_onlooker, p);
    start(SPLICE_ON);
    pass(0, 100000);
    ck_assert_uint_eq(splices(), 0);
    loop_runner_call(loop, remove_onlooker, p);
    pass(100000, 100000);
    ck_assert_uint_gt(splices(), 0);
}

TEST(choice, unix_sockets_are_spliced_too)
{
    close_pair();
    open_pair(sockets_unix);
    start(SPLICE_ON);
    pass(0, 100000);
    ck_assert_uint_gt(splices(), 0);
    ck_assert_str_eq(probe_events(&from), "a");
}

/* ---- nothing is lost ---- */

static void *say_long(void *arg)
{
    sockets_say_pattern(from.peer, 0, LONG_BYTES);
    sockets_end(from.peer);
    return arg;
}

static void pass_long(void)
{
    pthread_t speaker;

    pthread_create(&speaker, NULL, say_long, NULL);
    PAUSE_MS(100); /* until everything is full */
    sockets_hear_pattern(to.peer, 0, LONG_BYTES);
    sockets_hear_end(to.peer);
    pthread_join(speaker, NULL);
}

static const enum splice_mode modes[] = {SPLICE_AUTO, SPLICE_ON, SPLICE_OFF};

GROUP(bytes, setup, teardown);

TEST_EACH(bytes, a_slow_receiver_gets_every_byte_in_order, ARRAY_LEN(modes))
{
    start(modes[_i]);
    pass_long();
}

/* Block the receiver until a pipe holds what it did not take. */
static size_t block_with_pipe(void)
{
    size_t sent = 0;

    start(SPLICE_ON);
    do
        sent += sockets_stuff(from.peer, sent);
    while (probe_is(&to, channel_writable));
    ck_assert_uint_gt(probe_pending(&to), 0);
    return sent;
}

TEST(bytes, blocked_receiver_keeps_its_pipe_until_the_pipe_is_empty)
{
    size_t sent = block_with_pipe();

    ck_assert_ptr_nonnull(to.channel.pipe);
    ck_assert_uint_le(probe_pending(&to), SPLICE_MAX_BYTES);
    sockets_hear_pattern(to.peer, 0, sent);
    UNTIL(probe_pending(&to) == 0);
    ck_assert_ptr_null(to.channel.pipe);
    ck_assert(probe_saw(&to, PROBE_WRITABLE));
    pass(sent, 1000);
}

static atomic_bool early; /* told to be writable while it has a pipe */

static void go_on_without_pipe(struct probe *p)
{
    if (p->channel.pipe)
        atomic_store(&early, true);
    go_on(p);
}

TEST(bytes, receiver_with_a_pipe_is_not_writable_even_with_few_bytes_in_it)
{
    atomic_store(&early, false);
    to.on_writable = go_on_without_pipe;
    fault_plan(FAULT_SPLICE, 1, 3, EAGAIN); /* of the first from the pipe on */
    start(SPLICE_ON);
    pass(0, 1000);
    probe_wait(&to, PROBE_WRITABLE);
    ck_assert(!atomic_load(&early));
}

TEST(bytes, other_pairs_take_another_pipe_meanwhile)
{
    static struct probe other_from, other_to;

    block_with_pipe();
    probe_init(&other_from, net, sockets_tcp);
    probe_init(&other_to, net, sockets_tcp);
    probe_splice(&other_from, &other_to, SPLICE_ON);
    probe_start(&other_from);
    sockets_say_pattern(other_from.peer, 0, 50000);
    sockets_hear_pattern(other_to.peer, 0, 50000);
    probe_close(&other_from);
    probe_close(&other_to);
}

static int write_behind;

static void write_to(void *arg)
{
    (void)arg;
    write_behind = channel_write(&to.channel, "behind", 6);
}

TEST(bytes, bytes_written_meanwhile_follow_the_bytes_in_the_pipe)
{
    size_t sent = block_with_pipe(), in_source = from.channel.bytes_in;

    loop_runner_call(loop, write_to, NULL);
    ck_assert_int_eq(write_behind, 0);
    sockets_hear_pattern(to.peer, 0, in_source);
    sockets_hear(to.peer, "behind");
    sockets_hear_pattern(to.peer, in_source, sent - in_source);
}

TEST(bytes, copied_bytes_that_wait_are_not_overtaken)
{
    const size_t copied = 3u << 20; /* some of it waits to be sent */

    start(SPLICE_ON);
    ck_assert_int_eq(probe_write_pattern(&to, 0, copied), 0);
    sockets_say_pattern(from.peer, copied, 50000);
    sockets_hear_pattern(to.peer, 0, copied + 50000);
}

TEST(bytes, an_aborted_receiver_gives_its_pipe_up)
{
    block_with_pipe();
    probe_abort(&to, 0);
    probe_wait(&to, PROBE_CLOSED);
    ck_assert_ptr_null(to.channel.pipe);
    probe_abort(&from, 0);
}

/* ---- falling back ---- */

/* The first splice(2) reads from the source, the second writes to the receiver. */
TEST_EACH(bytes, a_source_or_receiver_that_cannot_be_spliced_is_tried_once_and_nothing_is_lost, 4)
{
    unsigned works = (unsigned)_i / 2;

    fault_plan(FAULT_SPLICE, works, FAULT_ALWAYS, _i % 2 ? EINVAL : EOPNOTSUPP);
    start(SPLICE_ON);
    pass_long();
    ck_assert_uint_eq(splices(), works + 1);
}

TEST(bytes, without_descriptors_for_a_pipe_bytes_are_copied)
{
    start(SPLICE_ON);
    process_allow_descriptors(0);
    pass_long();
    ck_assert_uint_eq(splices(), 0);
    process_allow_any_descriptors();
}

TEST(bytes, splicing_resumes_when_descriptors_are_available)
{
    static struct descriptor_budget descriptors = {.max = 10};
    struct pipe *own;

    net->pipes.descriptors = &descriptors;
    ck_assert_int_eq(pipe_pool_get(&net->pipes, &own), 0);
    descriptor_budget_count(&descriptors, 9); /* a pipe takes two */
    start(SPLICE_ON);
    pass(0, 100000);
    ck_assert_uint_eq(splices(), 0);
    descriptor_budget_release(&descriptors, 9);
    pass(100000, 100000);
    ck_assert_uint_gt(splices(), 0);
    probe_events(&from); /* the loop has left its callbacks */
    pipe_pool_put(&net->pipes, own);
    pipe_pool_trim(&net->pipes);
    ck_assert_uint_eq(descriptors.used, 0);
}

/*
 * What the channels say when the pipe is given back; the loop changes it as soon as the sink is
 * read.
 */
struct given_back {
    size_t held, room;
    bool has_pipe;
};

static void give_back(void *arg)
{
    struct given_back *g = arg;

    ck_assert(splice_give_back_pipes(net, SPLICE_GIVE_BACK));
    g->has_pipe = to.channel.pipe;
    g->held = channel_held_bytes(&to.channel);
    g->room = to.channel.out.cap;
}

static void note_bytes_in(void *arg)
{
    *(size_t *)arg = from.channel.bytes_in;
}

TEST(bytes, reclaimed_pipe_keeps_its_bytes_in_order)
{
    struct pipe *own;
    struct given_back now;
    size_t sent, in_source;

    ck_assert_int_eq(pipe_pool_get(&net->pipes, &own), 0); /* so that others are lent */
    sent = block_with_pipe();
    loop_runner_call(loop, note_bytes_in, &in_source);
    loop_runner_call(loop, write_to, NULL);
    loop_runner_call(loop, give_back, &now);
    ck_assert(!now.has_pipe);
    ck_assert_uint_eq(now.held, now.room);
    sockets_hear_pattern(to.peer, 0, in_source);
    sockets_hear(to.peer, "behind");
    sockets_hear_pattern(to.peer, in_source, sent - in_source);
    probe_wait(&to, PROBE_WRITABLE);
    pass(sent, 1000);
    probe_events(&from);
    pipe_pool_put(&net->pipes, own);
}

static void give_back_one(void *arg)
{
    struct pipe *other;

    (void)arg;
    ck_assert_int_eq(pipe_pool_get(&net->pipes, &other), 0);
    pipe_pool_hold(&net->pipes, other, &to.channel);
    ck_assert(!splice_give_back_pipes(net, 1));
    ck_assert_ptr_null(to.channel.pipe);
    pipe_pool_put(&net->pipes, other);
    ck_assert(splice_give_back_pipes(net, 1));
}

TEST(bytes, pipes_are_given_back_in_steps)
{
    struct pipe *own;

    ck_assert_int_eq(pipe_pool_get(&net->pipes, &own), 0); /* so that others are lent */
    block_with_pipe();
    loop_runner_call(loop, give_back_one, NULL);
    probe_abort(&to, 0);
    probe_wait(&to, PROBE_CLOSED);
    probe_abort(&from, 0);
    pipe_pool_put(&net->pipes, own);
}

TEST(bytes, an_interrupted_splice_is_done_again)
{
    fault_plan(FAULT_SPLICE, 0, 2, EINTR);
    start(SPLICE_ON);
    pass(0, 50000);
    ck_assert_str_eq(probe_events(&from), "a");
}

/* ---- urgent data, where splice(2) stops for good ---- */

#define URGENT_BEFORE 300000
#define URGENT_BEHIND 100000

/* With the urgent byte left in its place, or taken out by the kernel. */
static void start_with_urgent(int inline_byte)
{
    ck_assert_int_eq(
        setsockopt(from.channel.io.fd, SOL_SOCKET, SO_OOBINLINE, &inline_byte, sizeof(inline_byte)),
        0);
    start(SPLICE_ON);
}

static void say_urgent(void)
{
    ck_assert_int_eq(send(from.peer, "!", 1, MSG_OOB), 1);
}

TEST_EACH(bytes, an_end_right_behind_urgent_data_cuts_nothing_off, 2)
{
    start_with_urgent(_i);
    pass(0, URGENT_BEFORE);
    say_urgent();
    sockets_say_pattern(from.peer, URGENT_BEFORE, URGENT_BEHIND);
    sockets_end(from.peer);
    if (_i)
        sockets_hear(to.peer, "!");
    sockets_hear_pattern(to.peer, URGENT_BEFORE, URGENT_BEHIND);
    sockets_hear_end(to.peer);
    ck_assert_uint_eq(to.channel.bytes_out, URGENT_BEFORE + URGENT_BEHIND + (size_t)_i);
}

TEST_EACH(bytes, bytes_behind_urgent_data_arrive, 2)
{
    start_with_urgent(_i);
    for (size_t at = 0; at < 3 * URGENT_BEHIND; at += URGENT_BEHIND) {
        say_urgent();
        sockets_say_pattern(from.peer, at, URGENT_BEHIND);
        if (_i)
            sockets_hear(to.peer, "!");
        sockets_hear_pattern(to.peer, at, URGENT_BEHIND);
    }
}

TEST_EACH(bytes, urgent_data_alone_keeps_no_loop_busy, 2)
{
    unsigned calls;

    start_with_urgent(_i);
    pass(0, URGENT_BEFORE);
    say_urgent();
    if (_i)
        sockets_hear(to.peer, "!");
    PAUSE_MS(20);
    calls = splices();
    PAUSE_MS(200);
    ck_assert_uint_le(splices(), calls + 2); /* without an end it were hundreds */
    pass(0, URGENT_BEHIND);
}

TEST_EACH(bytes, a_readable_descriptor_that_yields_nothing_is_named_and_closed, ARRAY_LEN(modes))
{
    log_lines_capture(LOG_LEVEL_WARNING);
    fault_plan(FAULT_SPLICE, 0, FAULT_ALWAYS, EAGAIN);
    fault_plan(FAULT_RECV, 0, FAULT_ALWAYS, EAGAIN);
    start(modes[_i]);
    sockets_say(from.peer, "never read");
    probe_wait(&from, PROBE_CLOSED);
    ck_assert_int_eq(from.error, -EIO);
    EXPECT_LOG_LINES("reads returned nothing", 1);
    EXPECT_LOG_LINES("connection with 127.0.0.1:", 1);
    fault_plan(FAULT_RECV, 0, 0, 0);
    sockets_hear_reset(from.peer);
}

TEST_EACH(bytes, a_few_reads_of_nothing_close_nothing, ARRAY_LEN(modes))
{
    start(modes[_i]);
    for (size_t at = 0; at < 100; at += 10) {
        fault_plan(FAULT_SPLICE, 0, 100, EAGAIN);
        fault_plan(FAULT_RECV, 0, 100, EAGAIN);
        sockets_say_pattern(from.peer, at, 10);
        UNTIL(probe_in(&from) == at + 10);
    }
    fault_plan(FAULT_SPLICE, 0, 0, 0);
    fault_plan(FAULT_RECV, 0, 0, 0);
    sockets_hear_pattern(to.peer, 0, 100);
}

/* ---- ends ---- */

TEST(bytes, end_of_file_is_seen_through_a_splice)
{
    start(SPLICE_ON);
    pass(0, 50000);
    sockets_end(from.peer);
    sockets_hear_end(to.peer);
    ck_assert_str_eq(probe_events(&from), "ae");
}

TEST(bytes, a_reset_of_the_source_is_told_to_the_source)
{
    start(SPLICE_ON);
    pass(0, 50000);
    probe_reset_peer(&from);
    probe_wait(&from, PROBE_CLOSED);
    ck_assert_int_eq(from.error, -ECONNRESET);
}

TEST(bytes, reset_of_the_receiver_is_reported_to_the_receiver)
{
    start(SPLICE_ON);
    pass(0, 1000);
    probe_reset_peer(&to);
    probe_wait(&to, PROBE_CLOSED);
    ck_assert_int_eq(to.error, -ECONNRESET);
    sockets_say_pattern(from.peer, 0, 50000);
    UNTIL(probe_read(&from) == 0 && probe_saw(&from, PROBE_READ)); /* copied again, to nobody */
    ck_assert(!probe_saw(&from, PROBE_CLOSED));
}

TEST(bytes, broken_receiver_drops_the_bytes_in_the_pipe_and_frees_the_pipe)
{
    fault_plan(FAULT_SPLICE, 1, 1, EPIPE);
    start(SPLICE_ON);
    sockets_say_pattern(from.peer, 0, 1000);
    probe_wait(&to, PROBE_BROKEN);
    ck_assert_int_eq(to.broken, -EPIPE);
    ck_assert_ptr_null(to.channel.pipe);
    ck_assert(!probe_saw(&to, PROBE_CLOSED));
}
