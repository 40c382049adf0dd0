/*
 * engine/turn: control and tail tasks are bounded in number and time, so that no other step waits
 * for a crowd of them.
 */
#include <ev.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define QUANTUM_MS 5
#define SLOW       300 /* tasks of 1 ms */
#define MANY       3000

/* As many tasks of 1 ms as a quantum has time for, the last of which may overrun it. */
#define IN_QUANTUM (QUANTUM_MS + 1)

static const enum loop_queue queues[] = {LOOP_CONTROL, LOOP_TAIL};

static struct loop *loop;
static struct tasks_block block;
static struct tasks_slow tasks[MANY];

static void setup_with(int64_t quantum_ns)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = quantum_ns};

    loop = loop_runner_create_with(budget, 65536);
}

static void submit_all(enum loop_queue queue, unsigned n, int64_t ns)
{
    for (unsigned i = 0; i < n; i++) {
        tasks_slow_init(&tasks[i], ns);
        ck_assert_int_eq(loop_submit(loop, queue, &tasks[i].task), 0);
    }
}

static unsigned n_run(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SLOW; i++)
        n += atomic_load(&tasks[i].run);
    return n;
}

GROUP(bound, NULL, NULL);

TEST_EACH(bound, slow_control_and_tail_tasks_end_their_step_with_the_quantum, ARRAY_LEN(queues))
{
    setup_with(QUANTUM_MS * NS_PER_MS);
    tasks_block_begin(&block, loop);
    submit_all(queues[_i], SLOW, NS_PER_MS);
    tasks_block_end(&block);
    UNTIL(atomic_load(&tasks[SLOW - 1].run) == 1);
    loop_runner_destroy(loop);
    ck_assert_uint_le(tasks_slow_most(tasks, SLOW), IN_QUANTUM);
}

TEST(bound, number_of_quick_control_tasks_in_a_turn_is_bounded)
{
    setup_with(10 * NS_PER_S);
    tasks_block_begin(&block, loop);
    submit_all(LOOP_CONTROL, MANY, 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&tasks[MANY - 1].run) == 1);
    loop_runner_destroy(loop);
    ck_assert_uint_eq(tasks_slow_most(tasks, MANY), 1024);
}

/* Notes how many of the others have run. */
struct witness {
    struct task task;
    struct ev_io io;
    unsigned before;
    atomic_bool over;
};

static void witness_see(struct witness *w)
{
    w->before = n_run();
    atomic_store(&w->over, true);
}

static void witness_run(struct task *t)
{
    witness_see(CONTAINER_OF(t, struct witness, task));
}

static const struct task_type witness_type = {.name = "witness", .run = witness_run};

TEST_EACH(bound, a_task_has_its_step_behind_the_first_slow_control_or_tail_tasks, ARRAY_LEN(queues))
{
    struct witness w = {.task.type = &witness_type};

    setup_with(QUANTUM_MS * NS_PER_MS);
    tasks_block_begin(&block, loop);
    submit_all(queues[_i], SLOW, NS_PER_MS);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &w.task), 0);
    PAUSE_MS(2 * QUANTUM_MS); /* so that it does not run in the same turn */
    tasks_block_end(&block);
    UNTIL(atomic_load(&w.over));
    UNTIL(n_run() == SLOW);
    loop_runner_destroy(loop);
    ck_assert_uint_le(w.before, 2 * IN_QUANTUM);
}

static void witness_io(struct ev_loop *ev, struct ev_io *io, int revents)
{
    (void)revents;
    ev_io_stop(ev, io);
    witness_see(CONTAINER_OF(io, struct witness, io));
}

/* The first of its queue: while it runs the witness becomes readable. */
struct sender {
    struct task task;
    int fd;
};

static void sender_run(struct task *t)
{
    sockets_say(CONTAINER_OF(t, struct sender, task)->fd, "x");
}

static const struct task_type sender_type = {.name = "sender", .run = sender_run};

static void witness_start(void *arg)
{
    struct witness *w = arg;

    ev_io_start(loop_ev(loop), &w->io);
}

TEST_EACH(bound, io_does_not_wait_for_slow_control_or_tail_tasks, ARRAY_LEN(queues))
{
    struct sender sender = {.task.type = &sender_type};
    struct witness w = {.over = false};
    int ours;

    setup_with(QUANTUM_MS * NS_PER_MS);
    sockets_unix(&ours, &sender.fd);
    ev_io_init(&w.io, witness_io, ours, EV_READ);
    loop_runner_call(loop, witness_start, &w);
    tasks_block_begin(&block, loop);
    ck_assert_int_eq(loop_submit(loop, queues[_i], &sender.task), 0);
    submit_all(queues[_i], SLOW, NS_PER_MS);
    tasks_block_end(&block);
    UNTIL(atomic_load(&w.over));
    UNTIL(n_run() == SLOW);
    loop_runner_destroy(loop);
    ck_assert_uint_le(w.before, 2 * IN_QUANTUM);
    close(ours);
    close(sender.fd);
}

/* ---- reaping ---- */

#define REAPED 30 /* tasks of 1 ms */

struct late {
    struct task first, task; /* the first that is reaped submits the other */
    atomic_uint before;      /* reaped before that ran */
};

static void late_run_first(struct task *t)
{
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &CONTAINER_OF(t, struct late, first)->task), 0);
}

static void late_run(struct task *t)
{
    atomic_store(&CONTAINER_OF(t, struct late, task)->before, n_run());
}

static void reap_all(void *arg)
{
    static const struct task_type first_type = {.name = "first", .run = late_run_first};
    static const struct task_type type = {.name = "late", .run = late_run, .drop = late_run};
    struct late *late = arg;

    *late = (struct late){.first.type = &first_type, .task.type = &type};
    loop_reap(loop, &late->first);
    for (unsigned i = 0; i < REAPED; i++) {
        tasks_slow_init(&tasks[i], NS_PER_MS);
        loop_reap(loop, &tasks[i].task);
    }
}

TEST(bound, thousands_of_ended_objects_are_reaped_in_several_turns_before_the_end)
{
    struct late late;

    setup_with(NS_PER_MS);
    loop_runner_call(loop, reap_all, &late);
    loop_runner_destroy(loop);
    ck_assert_uint_eq(n_run(), REAPED);
    ck_assert_uint_lt(atomic_load(&late.before), REAPED / 2);
}

#define BRIEF    15 /* tasks of 20 us: longer than the rest of their turn */
#define ATTEMPTS 40

static void reap_brief(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < BRIEF; i++) {
        tasks_slow_init(&tasks[i], 20 * NS_PER_US);
        loop_reap(loop, &tasks[i].task);
    }
}

/* Another process may run meanwhile: so this is seen in most turns, not in all. */
TEST(bound, a_short_turn_has_a_millisecond_to_reap)
{
    unsigned in_one_turn = 0;

    setup_with(QUANTUM_MS * NS_PER_MS);
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        loop_runner_call(loop, reap_brief, NULL);
        UNTIL(atomic_load(&tasks[BRIEF - 1].run) == 1);
        in_one_turn += tasks_slow_most(tasks, BRIEF) == BRIEF;
        loop_runner_turn(loop);
    }
    loop_runner_destroy(loop);
    ck_assert_uint_gt(in_one_turn, ATTEMPTS / 2);
}

static void reap_after_long_time(void *arg)
{
    int64_t until_ns = clock_now_ns() + (int64_t)REAPED * 2 * NS_PER_MS;

    (void)arg;
    for (unsigned i = 0; i < REAPED; i++) {
        tasks_slow_init(&tasks[i], NS_PER_MS);
        loop_reap(loop, &tasks[i].task);
    }
    while (clock_now_ns() < until_ns)
        continue;
}

TEST(bound, a_long_turn_has_no_more_than_the_quantum_to_reap)
{
    setup_with(QUANTUM_MS * NS_PER_MS);
    loop_runner_call(loop, reap_after_long_time, NULL);
    UNTIL(atomic_load(&tasks[REAPED - 1].run) == 1);
    loop_runner_destroy(loop);
    ck_assert_uint_le(tasks_slow_most(tasks, REAPED), IN_QUANTUM);
}

/* ---- a loop whose work is less urgent ---- */

static atomic_uint yields; /* of the loop's thread */

/* In place of libc's. */
int sched_yield(void)
{
    if (loop_current() == loop && loop)
        atomic_fetch_add(&yields, 1);
    return (int)syscall(SYS_sched_yield);
}

static void setup_yielding(bool yields_after_turns)
{
    struct loop_conf conf = {.name = "test",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = MANY,
                             .yields = yields_after_turns};

    ck_assert_int_eq(loop_create(&loop, &conf), 0);
    atomic_store(&yields, 0);
}

static void run_one(int64_t ns)
{
    tasks_slow_init(&tasks[0], ns);
    ck_assert_int_eq(loop_submit(loop, LOOP_TAIL, &tasks[0].task), 0);
    UNTIL(atomic_load(&tasks[0].run) == 1);
    loop_runner_turn(loop);
}

TEST(bound, yielding_loop_yields_after_each_long_turn)
{
    setup_yielding(true);
    for (unsigned i = 1; i <= 5; i++) {
        run_one(NS_PER_MS);
        ck_assert_uint_ge(atomic_load(&yields), i);
    }
    loop_runner_destroy(loop);
}

TEST(bound, other_loops_do_not_yield)
{
    setup_yielding(false);
    run_one(NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&yields), 0);
    loop_runner_destroy(loop);
}
