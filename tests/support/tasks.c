/* support/tasks: see tasks.h. */
#include "support/tasks.h"

#include <check.h>

#include "base/clock.h"
#include "support/until.h"

static void counted_run(struct task *t)
{
    atomic_fetch_add(&CONTAINER_OF(t, struct tasks_counted, task)->run, 1);
}

static void counted_drop(struct task *t)
{
    atomic_fetch_add(&CONTAINER_OF(t, struct tasks_counted, task)->dropped, 1);
}

void tasks_counted_init(struct tasks_counted *t)
{
    static const struct task_type type = {
        .name = "counted", .run = counted_run, .drop = counted_drop};

    t->task.type = &type;
    atomic_init(&t->run, 0);
    atomic_init(&t->dropped, 0);
}

void tasks_counted_init_all(struct tasks_counted *t, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        tasks_counted_init(&t[i]);
}

unsigned tasks_counted_run(const struct tasks_counted *t, unsigned n)
{
    unsigned run = 0;

    for (unsigned i = 0; i < n; i++)
        run += atomic_load(&t[i].run);
    return run;
}

unsigned tasks_counted_dropped(const struct tasks_counted *t, unsigned n)
{
    unsigned dropped = 0;

    for (unsigned i = 0; i < n; i++)
        dropped += atomic_load(&t[i].dropped);
    return dropped;
}

void tasks_never_dropped(struct task *t)
{
    ck_abort_msg("dropped: %s", t->type->name);
}

static void meeting_run(struct task *t)
{
    pthread_barrier_wait(TIMER_OWNER(t, struct tasks_meeting, timer)->barrier);
}

void tasks_meeting_init(struct tasks_meeting *m, pthread_barrier_t *barrier)
{
    static const struct task_type type = {
        .name = "meeting", .run = meeting_run, .drop = tasks_never_dropped};

    timer_init(&m->timer, &type);
    m->barrier = barrier;
}

void tasks_trace_add(struct tasks_trace *trace, char letter)
{
    ck_assert_uint_lt(trace->len + 1, sizeof(trace->text));
    trace->text[trace->len++] = letter;
}

static void traced_run(struct task *t)
{
    struct tasks_traced *traced = CONTAINER_OF(t, struct tasks_traced, task);

    tasks_trace_add(traced->trace, traced->letter);
    if (traced->then)
        ck_assert_int_eq(loop_submit(loop_current(), traced->then_queue, &traced->then->task), 0);
}

static void traced_drop(struct task *t)
{
    struct tasks_traced *traced = CONTAINER_OF(t, struct tasks_traced, task);

    tasks_trace_add(traced->trace, '!');
    tasks_trace_add(traced->trace, traced->letter);
}

void tasks_traced_init(struct tasks_traced *t, struct tasks_trace *trace, char letter)
{
    static const struct task_type type = {.name = "traced", .run = traced_run, .drop = traced_drop};

    *t = (struct tasks_traced){.task.type = &type, .trace = trace, .letter = letter};
}

static void timer_run(struct task *t)
{
    struct tasks_timer *timer = TIMER_OWNER(t, struct tasks_timer, timer);

    tasks_trace_add(timer->trace, timer->letter);
}

static void timer_drop(struct task *t)
{
    struct tasks_timer *timer = TIMER_OWNER(t, struct tasks_timer, timer);

    tasks_trace_add(timer->trace, '!');
    tasks_trace_add(timer->trace, timer->letter);
}

void tasks_timer_init(struct tasks_timer *t, struct tasks_trace *trace, char letter)
{
    static const struct task_type type = {.name = "timer", .run = timer_run, .drop = timer_drop};

    timer_init(&t->timer, &type);
    t->trace = trace;
    t->letter = letter;
}

void tasks_timely_run(struct task *t)
{
    PAUSE_MS(CONTAINER_OF(t, struct tasks_timely, task)->ns / NS_PER_MS);
}

void tasks_timely_drop(struct task *t)
{
    (void)t;
}

void tasks_timely_submit(struct tasks_timely *t, const struct task_type *type, struct loop *loop,
                         enum loop_queue queue, int64_t ns)
{
    *t = (struct tasks_timely){.task.type = type, .ns = ns};
    ck_assert_int_eq(loop_submit(loop, queue, &t->task), 0);
}

static void slow_run(struct task *t)
{
    struct tasks_slow *s = CONTAINER_OF(t, struct tasks_slow, task);
    int64_t end_at_ns = clock_now_ns() + s->ns;
    struct loop_stats stats;

    loop_stats(loop_current(), &stats);
    s->turn = stats.turns;
    while (clock_now_ns() < end_at_ns)
        ;
    atomic_store(&s->run, 1);
}

void tasks_slow_init(struct tasks_slow *t, int64_t ns)
{
    static const struct task_type type = {.name = "slow", .run = slow_run};

    t->task.type = &type;
    t->ns = ns;
    t->turn = 0;
    atomic_init(&t->run, 0);
}

unsigned tasks_slow_most(const struct tasks_slow *t, unsigned n)
{
    unsigned in_turn = 1, most = 1;

    for (unsigned i = 1; i < n; i++) {
        in_turn = t[i].turn == t[i - 1].turn ? in_turn + 1 : 1;
        most = in_turn > most ? in_turn : most;
    }
    return most;
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) < 0)
        ; /* a signal came first */
}

static void block_run(struct task *t)
{
    struct tasks_block *b = CONTAINER_OF(t, struct tasks_block, task);

    sem_post(&b->entered);
    wait_for(&b->released);
}

static void block_drop(struct task *t)
{
    sem_post(&CONTAINER_OF(t, struct tasks_block, task)->entered);
}

void tasks_block_init(struct tasks_block *b)
{
    static const struct task_type type = {.name = "block", .run = block_run, .drop = block_drop};

    b->task.type = &type;
    sem_init(&b->entered, 0, 0);
    sem_init(&b->released, 0, 0);
}

void tasks_block_wait(struct tasks_block *b)
{
    wait_for(&b->entered);
}

void tasks_block_begin(struct tasks_block *b, struct loop *loop)
{
    tasks_block_init(b);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &b->task), 0);
    tasks_block_wait(b);
}

void tasks_block_end(struct tasks_block *b)
{
    sem_post(&b->released);
}
