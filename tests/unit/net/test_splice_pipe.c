/* net/splice: the bytes in the pipe between two sockets, and descriptors for pipes. */
#include <errno.h>
#include <stdatomic.h>

#include "net/descriptor_budget.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/spliced.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(bytes, spliced_setup, spliced_teardown);

/* Block the receiver until a pipe holds what it did not take. */
static size_t block_with_pipe(void)
{
    size_t sent = 0;

    spliced_start(SPLICE_ON);
    do
        sent += sockets_stuff(spliced.from.peer, sent);
    while (probe_is(&spliced.to, channel_writable));
    ck_assert_uint_gt(probe_pending(&spliced.to), 0);
    return sent;
}

TEST(bytes, blocked_receiver_keeps_its_pipe_until_the_pipe_is_empty)
{
    size_t sent = block_with_pipe();

    ck_assert_ptr_nonnull(spliced.to.channel.pipe);
    ck_assert_uint_le(probe_pending(&spliced.to), SPLICE_MAX_BYTES);
    sockets_hear_pattern(spliced.to.peer, 0, sent);
    UNTIL(probe_pending(&spliced.to) == 0);
    ck_assert_ptr_null(spliced.to.channel.pipe);
    ck_assert(probe_saw(&spliced.to, PROBE_WRITABLE));
    spliced_pass(sent, 1000);
}

static atomic_bool early; /* told to be writable while it has a pipe */

static void go_on_without_pipe(struct probe *p)
{
    if (p->channel.pipe)
        atomic_store(&early, true);
    spliced_go_on(p);
}

TEST(bytes, receiver_with_a_pipe_is_not_writable_even_with_few_bytes_in_it)
{
    atomic_store(&early, false);
    spliced.to.on_writable = go_on_without_pipe;
    fault_plan(FAULT_SPLICE, 1, 3, EAGAIN); /* of the first from the pipe on */
    spliced_start(SPLICE_ON);
    spliced_pass(0, 1000);
    probe_wait(&spliced.to, PROBE_WRITABLE);
    ck_assert(!atomic_load(&early));
}

TEST(bytes, other_pairs_take_another_pipe_meanwhile)
{
    static struct probe other_from, other_to;

    block_with_pipe();
    probe_init(&other_from, spliced.net, sockets_tcp);
    probe_init(&other_to, spliced.net, sockets_tcp);
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
    write_behind = channel_write(&spliced.to.channel, "behind", 6);
}

TEST(bytes, bytes_written_meanwhile_follow_the_bytes_in_the_pipe)
{
    size_t sent = block_with_pipe(), in_source = spliced.from.channel.bytes_in;

    loop_runner_call(spliced.loop, write_to, NULL);
    ck_assert_int_eq(write_behind, 0);
    sockets_hear_pattern(spliced.to.peer, 0, in_source);
    sockets_hear(spliced.to.peer, "behind");
    sockets_hear_pattern(spliced.to.peer, in_source, sent - in_source);
}

TEST(bytes, copied_bytes_that_wait_are_not_overtaken)
{
    const size_t copied = 3u << 20; /* some of it waits to be sent */

    spliced_start(SPLICE_ON);
    ck_assert_int_eq(probe_write_pattern(&spliced.to, 0, copied), 0);
    sockets_say_pattern(spliced.from.peer, copied, 50000);
    sockets_hear_pattern(spliced.to.peer, 0, copied + 50000);
}

TEST(bytes, an_aborted_receiver_gives_its_pipe_up)
{
    block_with_pipe();
    probe_abort(&spliced.to, 0);
    probe_wait(&spliced.to, PROBE_CLOSED);
    ck_assert_ptr_null(spliced.to.channel.pipe);
    probe_abort(&spliced.from, 0);
}

TEST(bytes, without_descriptors_for_a_pipe_bytes_are_copied)
{
    spliced_start(SPLICE_ON);
    process_allow_descriptors(0);
    spliced_pass_long();
    ck_assert_uint_eq(spliced_now(), 0);
    process_allow_any_descriptors();
}

TEST(bytes, splicing_resumes_when_descriptors_are_available)
{
    static struct descriptor_budget descriptors = {.max = 10};
    struct pipe *own;

    spliced.net->pipes.descriptors = &descriptors;
    ck_assert_int_eq(pipe_pool_get(&spliced.net->pipes, &own), 0);
    descriptor_budget_count(&descriptors, 9); /* a pipe takes two */
    spliced_start(SPLICE_ON);
    spliced_pass(0, 100000);
    ck_assert_uint_eq(spliced_now(), 0);
    descriptor_budget_release(&descriptors, 9);
    spliced_pass(100000, 100000);
    ck_assert_uint_gt(spliced_now(), 0);
    probe_events(&spliced.from); /* the loop has left its callbacks */
    pipe_pool_put(&spliced.net->pipes, own);
    pipe_pool_trim(&spliced.net->pipes);
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

    ck_assert(splice_give_back_pipes(spliced.net, SPLICE_GIVE_BACK));
    g->has_pipe = spliced.to.channel.pipe;
    g->held = channel_held_bytes(&spliced.to.channel);
    g->room = spliced.to.channel.out.cap;
}

static void note_bytes_in(void *arg)
{
    *(size_t *)arg = spliced.from.channel.bytes_in;
}

TEST(bytes, reclaimed_pipe_keeps_its_bytes_in_order)
{
    struct pipe *own;
    struct given_back now;
    size_t sent, in_source;

    ck_assert_int_eq(pipe_pool_get(&spliced.net->pipes, &own), 0); /* so that others are lent */
    sent = block_with_pipe();
    loop_runner_call(spliced.loop, note_bytes_in, &in_source);
    loop_runner_call(spliced.loop, write_to, NULL);
    loop_runner_call(spliced.loop, give_back, &now);
    ck_assert(!now.has_pipe);
    ck_assert_uint_eq(now.held, now.room);
    sockets_hear_pattern(spliced.to.peer, 0, in_source);
    sockets_hear(spliced.to.peer, "behind");
    sockets_hear_pattern(spliced.to.peer, in_source, sent - in_source);
    probe_wait(&spliced.to, PROBE_WRITABLE);
    spliced_pass(sent, 1000);
    probe_events(&spliced.from);
    pipe_pool_put(&spliced.net->pipes, own);
}

static void give_back_one(void *arg)
{
    struct pipe *other;

    (void)arg;
    ck_assert_int_eq(pipe_pool_get(&spliced.net->pipes, &other), 0);
    pipe_pool_hold(&spliced.net->pipes, other, &spliced.to.channel);
    ck_assert(!splice_give_back_pipes(spliced.net, 1));
    ck_assert_ptr_null(spliced.to.channel.pipe);
    pipe_pool_put(&spliced.net->pipes, other);
    ck_assert(splice_give_back_pipes(spliced.net, 1));
}

TEST(bytes, pipes_are_given_back_in_steps)
{
    struct pipe *own;

    ck_assert_int_eq(pipe_pool_get(&spliced.net->pipes, &own), 0); /* so that others are lent */
    block_with_pipe();
    loop_runner_call(spliced.loop, give_back_one, NULL);
    probe_abort(&spliced.to, 0);
    probe_wait(&spliced.to, PROBE_CLOSED);
    probe_abort(&spliced.from, 0);
    pipe_pool_put(&spliced.net->pipes, own);
}
