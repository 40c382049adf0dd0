/*
 * A channel whose reads are worked on by an executor, in order: engine/strand and net/channel
 * together. A full strand pauses the channel, so nothing is lost, and what waits stays bounded
 * however slow the work is.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/strand.h"
#include "net/channel.h"
#include "support/executor_runner.h"
#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define STREAM_BYTES ((size_t)16 << 20)
#define MAX_CHUNKS   8

struct offload {
    struct channel channel;
    struct handler tail;
    struct strand *strand;
    struct chunk *kept; /* refused; the channel is paused */
    bool echo;
    bool slow;

    /* Only the order of the strand's tasks guards this. */
    size_t worked_on;

    atomic_size_t done; /* bytes */
    atomic_uint queued; /* chunks */
    atomic_uint most;   /* of them at a time */
    atomic_uint accepted;
    atomic_uint run;
    atomic_uint dropped;
    atomic_uint n_pauses;
    atomic_uint n_notified;
    atomic_bool eof;
    atomic_bool closed;
};

/* A copy of one read. First it is a task of the strand, then perhaps one of the loop. */
struct chunk {
    struct task task;
    struct offload *o;
    size_t len;
    uint8_t data[];
};

static struct loop *loop;
static struct netloop *net;
static struct executor *e;
static struct offload offload;
static struct tasks_block block[2];
static int peer;

/* ---- on the executor ---- */

static void answer_run(struct task *t)
{
    struct chunk *c = CONTAINER_OF(t, struct chunk, task);

    if (!atomic_load(&c->o->closed) && channel_write(&c->o->channel, c->data, c->len) < 0)
        ck_abort_msg("cannot answer");
    free(c);
}

static void answer_drop(struct task *t)
{
    free(CONTAINER_OF(t, struct chunk, task));
}

static const struct task_type answer_type = {"answer", answer_run, answer_drop};

static void chunk_run(struct task *t)
{
    struct chunk *c = CONTAINER_OF(t, struct chunk, task);
    struct offload *o = c->o;
    uint8_t *expected = malloc(c->len);

    sockets_pattern(expected, o->worked_on, c->len);
    if (memcmp(c->data, expected, c->len) != 0)
        ck_abort_msg("not in order at %zu", o->worked_on);
    free(expected);
    if (o->slow && o->worked_on % 4 == 0)
        PAUSE_MS(1);
    o->worked_on += c->len;
    atomic_fetch_sub(&o->queued, 1);
    atomic_fetch_add(&o->run, 1);
    atomic_fetch_add(&o->done, c->len);
    t->type = &answer_type;
    if (!o->echo || loop_submit(loop, LOOP_TASKS, t) < 0)
        free(c);
}

static void chunk_drop(struct task *t)
{
    struct chunk *c = CONTAINER_OF(t, struct chunk, task);

    atomic_fetch_sub(&c->o->queued, 1);
    atomic_fetch_add(&c->o->dropped, 1);
    free(c);
}

static const struct task_type chunk_type = {"chunk", chunk_run, chunk_drop};

/* ---- on the loop ---- */

/* Hand it over, or keep it and read no more until there is room. */
static void offload_submit(struct offload *o, struct chunk *c)
{
    int rc;

    atomic_fetch_add(&o->queued, 1);
    rc = strand_submit(o->strand, &c->task);
    if (rc == 0) {
        unsigned queued = atomic_load(&o->queued);

        atomic_fetch_add(&o->accepted, 1);
        if (queued > atomic_load(&o->most))
            atomic_store(&o->most, queued);
        return;
    }
    ck_assert_int_eq(rc, -EAGAIN);
    atomic_fetch_sub(&o->queued, 1);
    o->kept = c;
    atomic_fetch_add(&o->n_pauses, 1);
    channel_stop_reading(&o->channel, CHANNEL_STOP_RECEIVER);
}

static void on_capacity(void *cookie)
{
    struct offload *o = cookie;
    struct chunk *c = o->kept;

    atomic_fetch_add(&o->n_notified, 1);
    ck_assert_ptr_nonnull(c);
    o->kept = NULL;
    offload_submit(o, c);
    if (!o->kept)
        channel_resume_reading(&o->channel, CHANNEL_STOP_RECEIVER);
}

static void on_active(struct handler *h)
{
    (void)h;
}

static void on_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct offload *o = CONTAINER_OF(h, struct offload, tail);
    struct chunk *c = malloc(sizeof(*c) + len);

    ck_assert_ptr_nonnull(c);
    ck_assert_ptr_null(o->kept); /* a paused channel does not read */
    c->task.type = &chunk_type;
    c->o = o;
    c->len = len;
    memcpy(c->data, data, len);
    offload_submit(o, c);
}

static void on_writable(struct handler *h)
{
    (void)h;
}

static void on_ended(struct handler *h, enum handler_end what, int error)
{
    struct offload *o = CONTAINER_OF(h, struct offload, tail);

    (void)error;
    if (what == HANDLER_EOF) {
        ck_assert_ptr_null(o->kept);
        atomic_store(&o->eof, true);
    } else if (what == HANDLER_CLOSED) {
        strand_destroy(o->strand);
        free(o->kept);
        o->kept = NULL;
        atomic_store(&o->closed, true);
    }
}

static const struct handler_ops offload_ops = {.name = "offload",
                                               .active = on_active,
                                               .read = on_read,
                                               .ended = on_ended,
                                               .writable = on_writable};

static void do_start(void *arg)
{
    struct strand_conf conf = {.executor = e,
                               .loop = loop,
                               .max_pending_tasks = MAX_CHUNKS,
                               .on_capacity = on_capacity,
                               .cookie = &offload};
    int *fd = arg;

    ck_assert_int_eq(strand_create(&offload.strand, &conf), 0);
    channel_init(&offload.channel, net, *fd);
    pipeline_init(&offload.channel.pipeline, &offload.channel, &offload.tail, &offload_ops);
    channel_start(&offload.channel);
}

static void do_abort(void *arg)
{
    (void)arg;
    channel_abort(&offload.channel, 0);
}

/* ---- the cases ---- */

static void setup(void)
{
    int ours;

    loop = loop_runner_create();
    net = probe_net(loop);
    e = executor_runner_create(2, 1000);
    memset(&offload, 0, sizeof(offload));
    offload.slow = true;
    sockets_unix(&ours, &peer);
    loop_runner_call(loop, do_start, &ours);
}

static void teardown(void)
{
    if (!atomic_load(&offload.closed))
        loop_runner_call(loop, do_abort, NULL);
    UNTIL(atomic_load(&offload.closed));
    close(peer);
    executor_runner_destroy(e);
    loop_runner_destroy(loop);
    netloop_destroy(net);
}

static void *say(void *arg)
{
    sockets_say_pattern(peer, 0, *(size_t *)arg);
    return NULL;
}

GROUP(offload, setup, teardown);

TEST(offload, input_beyond_a_slow_executor_waits_in_the_socket_and_arrives_in_order)
{
    sockets_say_pattern(peer, 0, STREAM_BYTES);
    sockets_end(peer);
    UNTIL(atomic_load(&offload.done) == STREAM_BYTES);
    UNTIL(atomic_load(&offload.eof));
    ck_assert_uint_gt(atomic_load(&offload.n_pauses), 0);
    ck_assert_uint_eq(atomic_load(&offload.n_notified), atomic_load(&offload.n_pauses));
    ck_assert_uint_le(atomic_load(&offload.most), MAX_CHUNKS + 1); /* and the one that runs */
    ck_assert_uint_eq(atomic_load(&offload.run), atomic_load(&offload.accepted));
}

static void do_echo(void *arg)
{
    offload.echo = *(bool *)arg;
}

/*
 * Netty's rule: what a handler on another thread sends goes back to the loop as a task, and keeps
 * its order.
 */
TEST(offload, an_echo_through_the_executor_keeps_the_order)
{
    size_t bytes = STREAM_BYTES / 4;
    bool echo = true;
    pthread_t sender;

    loop_runner_call(loop, do_echo, &echo);
    pthread_create(&sender, NULL, say, &bytes);
    sockets_hear_pattern(peer, 0, bytes);
    pthread_join(sender, NULL);
}

TEST(offload, abort_of_the_channel_drops_queued_chunks)
{
    executor_runner_block(e, &block[0]);
    executor_runner_block(e, &block[1]);
    ck_assert_uint_gt(sockets_stuff(peer, 0), 0);
    UNTIL(atomic_load(&offload.n_pauses) == 1);
    ck_assert_uint_eq(atomic_load(&offload.queued), MAX_CHUNKS);
    loop_runner_call(loop, do_abort, NULL);
    UNTIL(atomic_load(&offload.closed));
    ck_assert_uint_eq(atomic_load(&offload.dropped), MAX_CHUNKS);
    tasks_block_end(&block[0]);
    tasks_block_end(&block[1]);
}

TEST(offload, a_channel_that_ends_while_a_chunk_is_worked_on_loses_none)
{
    sockets_say_pattern(peer, 0, STREAM_BYTES / 16);
    loop_runner_call(loop, do_abort, NULL);
    UNTIL(atomic_load(&offload.closed));
    UNTIL(atomic_load(&offload.run) + atomic_load(&offload.dropped) ==
          atomic_load(&offload.accepted));
    ck_assert_uint_gt(atomic_load(&offload.run), 0);
    ck_assert_uint_eq(atomic_load(&offload.queued), 0);
}
