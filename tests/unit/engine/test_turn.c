/*
 * engine/turn: the order of one turn, and that neither I/O, control, timers nor tasks starve
 * another.
 */
#include <ev.h>
#include <unistd.h>

#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define LONG_QUANTUM_NS (10 * NS_PER_S)

static struct loop *loop;
static struct tasks_block block;
static struct tasks_trace trace;

static void setup_with(unsigned io_ratio, int64_t quantum_ns)
{
    struct budget_conf budget = {.io_ratio = io_ratio, .quantum_ns = quantum_ns};

    log_lines_capture(LOG_LEVEL_WARNING);
    loop = loop_runner_create_with(budget, 65536);
    trace = (struct tasks_trace){.len = 0};
}

static void submit_traced(struct tasks_traced *t, enum loop_queue queue)
{
    ck_assert_int_eq(loop_submit(loop, queue, &t->task), 0);
}

/* Submits itself again for ever; dropped when the loop ends. */
struct endless {
    struct task task;
    enum loop_queue queue;
    atomic_uint run;
    atomic_uint dropped;
};

static void endless_run(struct task *t)
{
    struct endless *e = CONTAINER_OF(t, struct endless, task);

    atomic_fetch_add(&e->run, 1);
    if (loop_submit(loop_current(), e->queue, t) < 0)
        atomic_fetch_add(&e->dropped, 1);
}

static void endless_drop(struct task *t)
{
    atomic_fetch_add(&CONTAINER_OF(t, struct endless, task)->dropped, 1);
}

static const struct task_type endless_type = {
    .name = "endless", .run = endless_run, .drop = endless_drop};

static void endless_begin(struct endless *e, enum loop_queue queue)
{
    *e = (struct endless){.task.type = &endless_type, .queue = queue};
    ck_assert_int_eq(loop_submit(loop, queue, &e->task), 0);
}

static void submit_slow(struct tasks_slow *s, unsigned n, int64_t ns)
{
    for (unsigned i = 0; i < n; i++) {
        tasks_slow_init(&s[i], ns);
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &s[i].task), 0);
    }
}

GROUP(order, NULL, NULL);

TEST(order, control_tasks_run_before_tasks_and_tail_tasks_after_them)
{
    struct tasks_traced tail, task[2], control[2];

    setup_with(50, 500 * NS_PER_MS);
    tasks_traced_init(&tail, &trace, 't');
    for (int i = 0; i < 2; i++) {
        tasks_traced_init(&task[i], &trace, (char)('1' + i));
        tasks_traced_init(&control[i], &trace, (char)('a' + i));
    }
    tasks_block_begin(&block, loop);
    submit_traced(&tail, LOOP_TAIL);
    submit_traced(&task[0], LOOP_TASKS);
    submit_traced(&control[0], LOOP_CONTROL);
    submit_traced(&task[1], LOOP_TASKS);
    submit_traced(&control[1], LOOP_CONTROL);
    PAUSE_MS(510); /* more than the quantum, so that it is the only task of its turn */
    tasks_block_end(&block);
    loop_runner_destroy(loop);
    ck_assert_str_eq(trace.text, "tab12"); /* the tail belongs to the turn that was under way */
}

TEST(order, a_turn_is_control_tasks_tail_reap)
{
    struct tasks_traced control, task, tail;

    setup_with(50, LONG_QUANTUM_NS);
    tasks_traced_init(&control, &trace, 'c');
    tasks_traced_init(&task, &trace, 't');
    tasks_traced_init(&tail, &trace, 'l');
    control.then = &task;
    control.then_queue = LOOP_TASKS;
    task.then = &tail;
    task.then_queue = LOOP_TAIL;
    submit_traced(&control, LOOP_CONTROL);
    loop_runner_destroy(loop);
    ck_assert_str_eq(trace.text, "ctl");
}

TEST(order, a_control_task_does_not_wait_behind_a_backlog)
{
    static struct tasks_slow slow[20000];
    struct tasks_counted control;

    setup_with(50, 5 * NS_PER_MS);
    tasks_counted_init(&control);
    submit_slow(slow, ARRAY_LEN(slow), 1 * NS_PER_MS);
    UNTIL(atomic_load(&slow[9].run) == 1);
    ck_assert_int_eq(loop_submit(loop, LOOP_CONTROL, &control.task), 0);
    UNTIL(atomic_load(&control.run) == 1);
    /* A quantum is 5 ms, the backlog 20 s. */
    ck_assert_uint_eq(atomic_load(&slow[ARRAY_LEN(slow) - 1].run), 0);
    loop_runner_destroy(loop);
}

TEST(order, endless_control_or_tail_tasks_do_not_starve_a_task)
{
    struct endless control, tail;
    struct tasks_counted t;

    setup_with(50, 100 * NS_PER_MS);
    tasks_counted_init(&t);
    endless_begin(&control, LOOP_CONTROL);
    endless_begin(&tail, LOOP_TAIL);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &t.task), 0);
    UNTIL(atomic_load(&t.run) == 1);
    loop_stop(loop, 0, 50 * NS_PER_MS);
    loop_runner_destroy(loop);
    ck_assert_uint_eq(atomic_load(&control.dropped), 1);
    ck_assert_uint_eq(atomic_load(&tail.dropped), 1);
}

TEST(order, a_tail_task_that_submits_itself_runs_once_a_turn)
{
    struct loop_stats stats;
    struct endless tail;

    setup_with(50, 100 * NS_PER_MS);
    endless_begin(&tail, LOOP_TAIL);
    UNTIL(atomic_load(&tail.run) >= 1000);
    loop_stop(loop, 0, 50 * NS_PER_MS);
    loop_runner_join(loop);
    loop_stats(loop, &stats);
    ck_assert_uint_le(atomic_load(&tail.run), stats.turns);
    ck_assert_uint_ge(atomic_load(&tail.run) + 3, stats.turns);
    loop_destroy(loop);
}

TEST(order, without_io_a_turn_runs_tasks_for_a_slice)
{
    static struct tasks_slow tasks[20];

    setup_with(50, LONG_QUANTUM_NS);
    tasks_block_begin(&block, loop);
    submit_slow(tasks, ARRAY_LEN(tasks), 2 * BUDGET_SLICE_NS);
    tasks_block_end(&block);
    loop_runner_destroy(loop);
    for (size_t i = 1; i < ARRAY_LEN(tasks); i++)
        ck_assert_uint_eq(tasks[i].turn, tasks[i - 1].turn + 1);
}

TEST(order, at_ratio_100_a_turn_runs_all_tasks_queued_at_its_start)
{
    static struct tasks_slow tasks[1000];

    setup_with(100, LONG_QUANTUM_NS);
    tasks_block_begin(&block, loop);
    submit_slow(tasks, 1000, 0);
    tasks_block_end(&block);
    loop_runner_destroy(loop);
    for (int i = 1; i < 1000; i++)
        ck_assert_uint_eq(tasks[i].turn, tasks[0].turn);
}

/* ---- I/O ---- */

struct echo {
    struct ev_io io;
    int64_t work_ns; /* for each byte */
    int peer;
};

static void echo_byte(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct echo *e = CONTAINER_OF(w, struct echo, io);
    int64_t end_at_ns = clock_now_ns() + e->work_ns;
    char byte;

    (void)ev;
    (void)revents;
    ck_assert_int_eq(read(w->fd, &byte, 1), 1);
    while (clock_now_ns() < end_at_ns)
        ;
    ck_assert_int_eq(write(w->fd, &byte, 1), 1);
}

static void echo_start(void *arg)
{
    struct echo *e = arg;

    ev_io_start(loop_ev(loop), &e->io);
}

static void echo_stop(void *arg)
{
    struct echo *e = arg;

    ev_io_stop(loop_ev(loop), &e->io);
    close(e->io.fd);
    close(e->peer);
}

static void echo_begin(struct echo *e, int64_t work_ns)
{
    int ours;

    sockets_unix(&ours, &e->peer);
    e->work_ns = work_ns;
    ev_io_init(&e->io, echo_byte, ours, EV_READ);
    loop_runner_call(loop, echo_start, e);
}

static const unsigned ratios[] = {1, 50, 99, 100};

GROUP(io, NULL, NULL);

TEST_EACH(io, task_that_resubmits_itself_does_not_starve_io, ARRAY_LEN(ratios))
{
    struct endless endless;
    struct echo echo;

    setup_with(ratios[_i], 20 * NS_PER_MS);
    endless_begin(&endless, LOOP_TASKS);
    echo_begin(&echo, 0);
    for (int i = 0; i < 10; i++) {
        sockets_say(echo.peer, "x");
        sockets_hear(echo.peer, "x");
    }
    loop_runner_call(loop, echo_stop, &echo);
    loop_stop(loop, 0, 50 * NS_PER_MS);
    loop_runner_destroy(loop);
    ck_assert_uint_eq(atomic_load(&endless.dropped), 1);
}

/* A connection whose first bytes are there before it is adopted. */
struct newcomer {
    struct task task;
    struct ev_io io;
    int peer;
    struct tasks_traced waiting; /* for the same turn */
};

static void newcomer_on_byte(struct ev_loop *ev, struct ev_io *w, int revents)
{
    (void)revents;
    tasks_trace_add(&trace, 'i');
    ev_io_stop(ev, w);
}

static void newcomer_adopt(struct task *t)
{
    struct newcomer *n = CONTAINER_OF(t, struct newcomer, task);

    tasks_trace_add(&trace, 'c');
    submit_traced(&n->waiting, LOOP_TASKS);
    ev_io_start(loop_ev(loop), &n->io);
}

static const struct task_type newcomer_type = {.name = "newcomer", .run = newcomer_adopt};

TEST(io, descriptor_adopted_by_a_control_task_is_polled_before_waiting_tasks)
{
    struct newcomer newcomer = {.task.type = &newcomer_type};
    int ours;

    setup_with(50, LONG_QUANTUM_NS);
    sockets_unix(&ours, &newcomer.peer);
    sockets_say(newcomer.peer, "x");
    ev_io_init(&newcomer.io, newcomer_on_byte, ours, EV_READ);
    tasks_traced_init(&newcomer.waiting, &trace, 'a');
    ck_assert_int_eq(loop_submit(loop, LOOP_CONTROL, &newcomer.task), 0);
    PAUSE_MS(50);
    loop_runner_destroy(loop);
    ck_assert_str_eq(trace.text, "cia");
    close(ours);
    close(newcomer.peer);
}

TEST(io, the_time_a_poll_waits_is_not_io_time)
{
    struct loop_stats stats;
    struct echo echo;

    setup_with(50, 100 * NS_PER_MS);
    echo_begin(&echo, 0);
    PAUSE_MS(200);
    sockets_say(echo.peer, "x");
    sockets_hear(echo.peer, "x");
    stats = loop_runner_stats(loop);
    ck_assert_int_lt(stats.io_ns, 100 * NS_PER_MS);
    loop_runner_call(loop, echo_stop, &echo);
    loop_runner_destroy(loop);
}

/* A turn with 50 ms of I/O and 4000 tasks of 100 us: how many of them run in one turn at most. */
static unsigned most_in_a_turn(struct echo *echo)
{
    static struct tasks_slow tasks[4000];
    struct loop_stats before, stats;
    unsigned most;

    loop_stats(loop, &before);
    tasks_block_begin(&block, loop);
    sockets_say(echo->peer, "x");
    submit_slow(tasks, 4000, 100 * NS_PER_US);
    tasks_block_end(&block);
    sockets_hear(echo->peer, "x");
    UNTIL(atomic_load(&tasks[3999].run) == 1);
    most = tasks_slow_most(tasks, 4000);
    stats = loop_runner_stats(loop); /* wake-ups are I/O, too, and take long on a busy machine */
    /* As many as fit into what the I/O took, 50 ms or more. */
    ck_assert_int_le(most, (stats.io_ns - before.io_ns) / (100 * NS_PER_US) + 1);
    return most;
}

TEST(io, tasks_get_as_much_time_as_io_took_at_ratio_50)
{
    struct echo echo;

    setup_with(50, LONG_QUANTUM_NS);
    echo_begin(&echo, 50 * NS_PER_MS);
    /*
     * More than a turn without I/O would run, unless other processes had the processor for all that
     * time.
     */
    UNTIL(most_in_a_turn(&echo) > BUDGET_BATCH);
    loop_runner_call(loop, echo_stop, &echo);
    loop_runner_destroy(loop);
}

TEST(io, an_idle_loop_does_not_turn)
{
    struct loop_stats before, after;

    setup_with(50, 100 * NS_PER_MS);
    after = loop_runner_stats(loop);
    UNTIL((loop_stats(loop, &before), before.polls_blocking > after.polls_blocking));
    PAUSE_MS(200);
    loop_stats(loop, &after);
    ck_assert_uint_eq(after.turns, before.turns);
    loop_runner_destroy(loop);
}

/* ---- reaping ---- */

struct reaper {
    struct tasks_traced first, second, tail, reaped, inner;
    struct task reap_inner;
};

static void reap_inner(struct task *t)
{
    struct reaper *r = CONTAINER_OF(t, struct reaper, reap_inner);

    tasks_trace_add(&trace, 'r');
    loop_reap(loop, &r->inner.task);
}

static void begin_reaping(void *arg)
{
    static const struct task_type type = {.name = "reap inner", .run = reap_inner};
    struct reaper *r = arg;

    tasks_traced_init(&r->first, &trace, '1');
    tasks_traced_init(&r->tail, &trace, 't');
    tasks_traced_init(&r->reaped, &trace, 's');
    tasks_traced_init(&r->inner, &trace, 'i');
    r->reap_inner.type = &type;
    loop_reap(loop, &r->reap_inner);
    loop_reap(loop, &r->reaped.task);
    submit_traced(&r->tail, LOOP_TAIL);
    submit_traced(&r->first, LOOP_TASKS);
}

TEST(order, objects_are_reaped_last_including_those_added_while_reaping)
{
    struct reaper r;

    setup_with(50, 100 * NS_PER_MS);
    loop_runner_call(loop, begin_reaping, &r);
    loop_runner_destroy(loop);
    ck_assert_str_eq(trace.text, "1trsi");
}
