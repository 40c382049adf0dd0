/*
 * net/pipeline and net/handler: inbound from head to tail, outbound the other way, and leaving in
 * the middle.
 */
#include <errno.h>
#include <string.h>

#include "support/loop_runner.h"
#include "support/probe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct tasks_trace trace;

/*
 * A handler that adds its letter, small for inbound events and large for outbound ones, and passes
 * them on.
 */
struct lettered {
    struct handler handler;
    char letter;
    bool leave_on_read;
    struct lettered *removes; /* on read */
    bool twice;               /* passes each read on twice */
};

static char letter_of(const struct handler *h, bool inbound)
{
    char letter = CONTAINER_OF(h, struct lettered, handler)->letter;

    return (char)(inbound ? letter : letter - 'a' + 'A');
}

static void in_active(struct handler *h)
{
    tasks_trace_add(&trace, letter_of(h, true));
    handler_active(h->next);
}

static void in_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct lettered *l = CONTAINER_OF(h, struct lettered, handler);

    tasks_trace_add(&trace, letter_of(h, true));
    if (l->leave_on_read)
        pipeline_remove(&h->channel->pipeline, h);
    if (l->removes)
        pipeline_remove(&h->channel->pipeline, &l->removes->handler);
    l->removes = NULL;
    handler_read(h->next, data, len);
    if (l->twice)
        handler_read(h->next, data, len);
}

static void in_ended(struct handler *h, enum handler_end what, int error)
{
    tasks_trace_add(&trace, letter_of(h, true));
    handler_ended(h->next, what, error);
}

static void in_writable(struct handler *h)
{
    tasks_trace_add(&trace, letter_of(h, true));
    handler_writable(h->next);
}

static int out_write(struct handler *h, const void *data, size_t len)
{
    tasks_trace_add(&trace, letter_of(h, false));
    return handler_write(h, data, len);
}

static void out_shutdown_write(struct handler *h)
{
    tasks_trace_add(&trace, letter_of(h, false));
    handler_shutdown_write(h);
}

static const struct handler_ops inbound = {.name = "inbound",
                                           .active = in_active,
                                           .read = in_read,
                                           .ended = in_ended,
                                           .writable = in_writable};
static const struct handler_ops outbound = {
    .name = "outbound", .write = out_write, .shutdown_write = out_shutdown_write};
static const struct handler_ops both = {.name = "both",
                                        .active = in_active,
                                        .read = in_read,
                                        .ended = in_ended,
                                        .writable = in_writable,
                                        .write = out_write,
                                        .shutdown_write = out_shutdown_write};
static const struct handler_ops nothing = {.name = "nothing"};

/* Four in a row: a inbound, b outbound, c both, d neither. */
static struct lettered a = {.letter = 'a'}, b = {.letter = 'b'}, c = {.letter = 'c'},
                       d = {.letter = 'd'};

static void add_four(void *arg)
{
    struct pipeline *p = &probe.channel.pipeline;

    (void)arg;
    pipeline_add(p, &a.handler, &inbound);
    pipeline_add(p, &b.handler, &outbound);
    pipeline_add(p, &c.handler, &both);
    pipeline_add(p, &d.handler, &nothing);
}

static void setup(void)
{
    probe_connect();
    loop_runner_call(probe.net->loop, add_four, NULL);
}

static void copy_trace(void *arg)
{
    memcpy(arg, trace.text, sizeof(trace.text));
    trace = (struct tasks_trace){.len = 0};
}

/* The letters since the last time. */
static const char *letters(void)
{
    static char text[sizeof(trace.text)];

    loop_runner_call(probe.net->loop, copy_trace, text);
    return text;
}

GROUP(pipeline, setup, probe_disconnect);

TEST(pipeline, inbound_events_go_from_head_to_tail_and_skip_handlers_without_the_event)
{
    probe_start(&probe);
    ck_assert_str_eq(letters(), "ac");
    sockets_say(probe.peer, "x");
    probe_wait(&probe, PROBE_READ);
    ck_assert_str_eq(letters(), "ac");
    sockets_end(probe.peer);
    probe_wait(&probe, PROBE_EOF);
    ck_assert_str_eq(letters(), "ac");
    probe_abort(&probe, 0);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_str_eq(letters(), "ac");
    ck_assert_str_eq(probe_events(&probe), "arec");
}

TEST(pipeline, outbound_operations_go_from_the_tail_to_the_head)
{
    probe_start(&probe);
    letters();
    ck_assert_int_eq(probe_write(&probe, "hello", 5), 0);
    ck_assert_str_eq(letters(), "CB");
    sockets_hear(probe.peer, "hello");
    probe_do(&probe, channel_shutdown_write);
    ck_assert_str_eq(letters(), "CB");
    sockets_hear_end(probe.peer);
}

static void write_from_c(void *arg)
{
    *(int *)arg = handler_write(&c.handler, "x", 1);
}

static void end_from_a(void *arg)
{
    (void)arg;
    handler_shutdown_write(&a.handler);
}

TEST(pipeline, operation_of_a_handler_starts_at_the_handler_before_it)
{
    int rc;

    probe_start(&probe);
    letters();
    loop_runner_call(probe.net->loop, write_from_c, &rc);
    ck_assert_int_eq(rc, 0);
    ck_assert_str_eq(letters(), "B");
    loop_runner_call(probe.net->loop, end_from_a, NULL);
    ck_assert_str_eq(letters(), ""); /* nobody is before it but the socket */
    sockets_hear(probe.peer, "x");
    sockets_hear_end(probe.peer);
}

static void remove_handler(void *arg)
{
    pipeline_remove(&probe.channel.pipeline, arg);
}

TEST(pipeline, a_removed_handler_gets_nothing_more)
{
    loop_runner_call(probe.net->loop, remove_handler, &c.handler);
    probe_start(&probe);
    ck_assert_str_eq(letters(), "a");
    loop_runner_call(probe.net->loop, remove_handler, &a.handler);
    ck_assert_int_eq(probe_write(&probe, "x", 1), 0);
    ck_assert_str_eq(letters(), "B");
    loop_runner_call(probe.net->loop, remove_handler, &d.handler);
    loop_runner_call(probe.net->loop, remove_handler, &b.handler);
    ck_assert_int_eq(probe_write(&probe, "y", 1), 0);
    sockets_say(probe.peer, "z");
    probe_wait(&probe, PROBE_READ);
    ck_assert_str_eq(letters(), "");
    sockets_hear(probe.peer, "xy");
}

TEST(pipeline, a_handler_may_remove_itself_and_still_pass_its_event_on)
{
    a.leave_on_read = c.leave_on_read = true;
    probe_start(&probe);
    letters();
    sockets_say(probe.peer, "x");
    probe_wait(&probe, PROBE_READ);
    ck_assert_str_eq(letters(), "ac");
    ck_assert_uint_eq(probe_read(&probe), 1);
    sockets_say(probe.peer, "y");
    UNTIL(probe_read(&probe) == 2);
    ck_assert_str_eq(letters(), "");
}

TEST(pipeline, handler_removed_during_an_event_gets_no_second_call_of_it)
{
    a.twice = a.leave_on_read = c.leave_on_read = true;
    probe_start(&probe);
    letters();
    sockets_say(probe.peer, "x");
    UNTIL(probe_read(&probe) == 2);
    ck_assert_str_eq(letters(), "ac");
}

TEST(pipeline, handler_removed_by_another_handler_is_skipped_at_once)
{
    a.removes = &c;
    probe_start(&probe);
    letters();
    sockets_say(probe.peer, "x");
    probe_wait(&probe, PROBE_READ);
    ck_assert_str_eq(letters(), "a");
    ck_assert_int_eq(probe_write(&probe, "y", 1), 0);
    ck_assert_str_eq(letters(), "B");
}

static int failed;

static void on_ended(struct handler *h, enum handler_end what, int error)
{
    if (what == HANDLER_REJECTED) {
        failed = error;
        channel_abort(h->channel, 0);
    } else {
        handler_ended(h->next, what, error);
    }
}

static const struct handler_ops minder = {.name = "minder", .ended = on_ended};

static void fail_behind_a(void *arg)
{
    (void)arg;
    handler_ended(a.handler.next, HANDLER_REJECTED, -EPROTO);
}

static void add_minder(void *arg)
{
    pipeline_add(&probe.channel.pipeline, arg, &minder);
}

TEST(pipeline, rejected_input_is_an_event_of_the_tail)
{
    probe_start(&probe);
    loop_runner_call(probe.net->loop, fail_behind_a, NULL);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_str_eq(probe_events(&probe), "axc");
    ck_assert_int_eq(probe.error, -EPROTO);
    sockets_hear_reset(probe.peer);
}

TEST(pipeline, rejected_input_is_passed_to_the_next_handler)
{
    struct handler h;

    loop_runner_call(probe.net->loop, add_minder, &h);
    probe_start(&probe);
    loop_runner_call(probe.net->loop, fail_behind_a, NULL);
    probe_wait(&probe, PROBE_CLOSED);
    ck_assert_int_eq(failed, -EPROTO);
    ck_assert_int_eq(probe.error, 0);
}

/* The tail may pause as well, and neither goes on for the other. */
static void hold(struct channel *ch)
{
    channel_stop_reading(ch, CHANNEL_STOP_HANDLER);
}

static void release(struct channel *ch)
{
    channel_resume_reading(ch, CHANNEL_STOP_HANDLER);
}

static bool is_read(const struct channel *ch)
{
    return !channel_stopped(ch, CHANNEL_STOP_ANY);
}

static void discard(struct channel *ch)
{
    channel_discard(ch, 0);
}

TEST(pipeline, channel_is_read_when_neither_a_handler_nor_the_tail_paused_it)
{
    probe_start(&probe);
    probe_do(&probe, hold);
    probe_stop(&probe);
    sockets_say(probe.peer, "x");
    probe_do(&probe, release);
    PAUSE_MS(50);
    ck_assert_uint_eq(probe_read(&probe), 0);
    ck_assert(!probe_is(&probe, is_read));
    probe_do(&probe, hold);
    probe_read_on(&probe);
    PAUSE_MS(50);
    ck_assert_uint_eq(probe_read(&probe), 0);
    probe_do(&probe, release);
    UNTIL(probe_read(&probe) == 1);
    probe_do(&probe, hold);
    probe_do(&probe, discard); /* such a channel is not stopped */
    ck_assert(probe_is(&probe, is_read));
}

TEST(pipeline, water_marks_reach_the_tail_through_the_handlers)
{
    probe_start(&probe);
    while (probe_is(&probe, channel_writable))
        ck_assert_int_eq(probe_write_pattern(&probe, 0, 60000), 0);
    letters();
    while (!probe_saw(&probe, PROBE_WRITABLE)) {
        uint8_t data[60000];

        ck_assert_int_gt(recv(probe.peer, data, sizeof(data), 0), 0);
    }
    ck_assert_str_eq(letters(), "ac");
}

static size_t give_back_2(struct handler *h)
{
    (void)h;
    return 2;
}

static size_t give_back_3(struct handler *h)
{
    (void)h;
    return 3;
}

TEST(pipeline, reclaim_adds_up_the_bytes_of_all_handlers)
{
    static const struct handler_ops tail_ops = {.name = "tail"},
                                    ops_2 = {.name = "2", .reclaim = give_back_2},
                                    ops_3 = {.name = "3", .reclaim = give_back_3};
    struct handler tail, first, second;
    struct channel ch = {.flags = 0};

    pipeline_init(&ch.pipeline, &ch, &tail, &tail_ops);
    ck_assert_uint_eq(pipeline_reclaim(&ch.pipeline), 0);
    pipeline_add(&ch.pipeline, &first, &ops_2);
    pipeline_add(&ch.pipeline, &second, &ops_3);
    ck_assert_uint_eq(pipeline_reclaim(&ch.pipeline), 5);
}
