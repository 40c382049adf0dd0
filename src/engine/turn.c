/*
 * engine/turn: one turn of a loop, in the steps of loop.h.
 *
 * note: stretch. Tasks of one type between two readings of the clock are measured together, as a
 * stretch; the longest stretch is reported with its type.
 *
 * note: newer tasks. Step 4 runs the tasks queued at its start. It also takes newer tasks in three
 * cases: the turn had I/O, and io_ratio gives tasks time; few tasks have run, and another turn
 * would cost more; a timer is due, and must not overtake earlier tasks. Otherwise it leaves the
 * queue's cache line to the producers.
 */
#include <sched.h>

#include "base/clock.h"
#include "engine/loop_internal.h"

/* Limit per turn: control tasks that submit control tasks must not delay I/O for ever. */
#define TURN_CONTROL_MAX 1024

/*
 * Finished tasks leave the gate in batches, because each gate_leave() costs producers and loop a
 * cache miss. A batch is at most a sixteenth of max_pending_tasks, because the finished tasks in it
 * still count as pending.
 */
#define TURN_LEAVE_EACH 1024
#define TURN_LEAVE_PART 16

/* A loop yields after turns of at least this time. */
#define TURN_YIELD_NS (50 * NS_PER_US)

/* Minimum time of step 6. */
#define TURN_REAP_NS NS_PER_MS

bool turn_has_work(const struct loop *l)
{
    return l->reap.first || !queue_empty(&l->queues[LOOP_CONTROL]) ||
           !queue_empty(&l->queues[LOOP_TASKS]) || !queue_empty(&l->queues[LOOP_TAIL]) ||
           l->schedule.n_due > 0 || timer_heap_next_at_ns(&l->schedule) <= l->clock_at_ns;
}

uint64_t turn_queued(const struct loop *l)
{
    return gate_count(&l->queues[LOOP_TASKS].gate) + l->schedule.n_due;
}

void turn_init(struct loop *l)
{
    struct backend_memory *before = backend_memory_use(&l->backend.memory);

    l->clock_at_ns = clock_now_ns();
    turn_poll_init(l);
    backend_memory_use(before);
}

static void turn_read_clock(struct loop *l)
{
    int64_t now_ns;

    if (!l->type)
        return;
    now_ns = clock_now_ns();
    if (now_ns - l->clock_at_ns > TELEMETRY_GET(l->telemetry.longest_ns)) {
        TELEMETRY_SET(l->telemetry.longest_ns, now_ns - l->clock_at_ns);
        TELEMETRY_SET(l->telemetry.longest_name, l->type->name);
    }
    l->clock_at_ns = now_ns;
    l->type = NULL;
}

/* See note: stretch. */
static void turn_enter(struct loop *l, const struct task_type *type)
{
    if (type == l->type)
        return;
    turn_read_clock(l);
    l->type = type;
    l->ran = true;
    TELEMETRY_SET(l->telemetry.doing, type->name);
}

static struct task *turn_take(struct loop *l, enum loop_queue queue)
{
    struct task *t = queue_pop(&l->queues[queue]);

    if (!t)
        return NULL;
    turn_enter(l, t->type);
    if (t->queued_at_ns > 0) {
        l->last_stamp_at_ns[queue] = t->queued_at_ns;
        histogram_count(&l->telemetry.queue_wait, l->clock_at_ns - t->queued_at_ns);
    }
    return t;
}

/* Publish when the oldest task was submitted; count ${n} finished tasks out. */
static void turn_leave(struct loop *l, enum loop_queue queue, uint64_t n)
{
    const struct task *next;

    if (n == 0)
        return;
    next = queue_peek(&l->queues[queue]);
    TELEMETRY_SET(l->oldest_at_ns[queue],
                  next && next->queued_at_ns > 0 ? next->queued_at_ns : l->last_stamp_at_ns[queue]);
    gate_leave(&l->queues[queue].gate, n);
}

static void turn_fetch_due(struct loop *l)
{
    if (timer_heap_next_at_ns(&l->schedule) > l->now_ns)
        return;
    timer_heap_fetch_due(&l->schedule, l->now_ns, l->heard.at_ns,
                         l->tasks_taken + gate_count(&l->queues[LOOP_TASKS].gate),
                         TIMER_HEAP_DUE_MAX);
}

/* Steps 3 and 5: run up to ${max} tasks of a queue, within task_quantum. */
static uint64_t turn_queue(struct loop *l, enum loop_queue queue, uint64_t max)
{
    struct budget_conf conf = {.io_ratio = 100, .quantum_ns = l->quantum_ns};
    struct budget budget;
    struct task *t;

    queue_take(&l->queues[queue]);
    budget_begin(&budget, &conf, 0, l->clock_at_ns, max);
    while ((t = turn_take(l, queue))) {
        t->type->run(t);
        if (!budget_count(&budget))
            continue;
        turn_read_clock(l);
        if (budget_spent(&budget, l->clock_at_ns))
            break;
    }
    turn_leave(l, queue, budget.run);
    turn_read_clock(l);
    TELEMETRY_ADD(l->telemetry.tasks_run, budget.run);
    return budget.run;
}

/*
 * Step 3. New connections may have received bytes: poll before step 4, which may last task_quantum.
 */
static void turn_control(struct loop *l)
{
    if (queue_empty(&l->queues[LOOP_CONTROL]) || turn_queue(l, LOOP_CONTROL, TURN_CONTROL_MAX) == 0)
        return;
    l->last_task_at_ns = l->clock_at_ns;
    if (turn_has_work(l))
        turn_poll_again(l);
}

/*
 * run() may free a one-shot timer, or a periodic one that it cancels (loop->periodic is NULL then):
 * do not access the timer afterwards. A withdrawn timer is left to the task that drops it.
 */
static void turn_run_timer(struct loop *l, struct timer *t)
{
    bool periodic = t->period_ns != 0;
    bool held = atomic_load_explicit(&t->claim, memory_order_acquire) != TIMER_FREE;
    const struct task_type *type = held ? t->own_type : t->task.type;

    timer_heap_remove(&l->schedule, t);
    if (held && !timer_move_claim(t, TIMER_HELD, periodic ? TIMER_HELD : TIMER_FREE))
        return; /* see note: claim in timer.h */
    turn_enter(l, type);
    l->periodic = periodic ? t : NULL;
    type->run(&t->task);
    TELEMETRY_ADD(l->telemetry.tasks_own, 1);
    if (!l->periodic)
        return;
    l->periodic = NULL;
    if (atomic_load_explicit(&t->claim, memory_order_relaxed) == (held ? TIMER_HELD : TIMER_FREE)) {
        t->at_ns = timer_next_at_ns(t, clock_now_ns());
        timer_heap_add_again(&l->schedule, t, l->now_ns);
    }
}

/* Step 4: run one task or timer; false: none is left. */
static bool turn_run_next(struct loop *l, const struct budget *budget, uint64_t *from_queue)
{
    struct timer *due = timer_heap_first_due(&l->schedule);
    struct task *t;

    if (due && due->order <= l->tasks_taken) {
        turn_run_timer(l, due);
        return true;
    }
    t = turn_take(l, LOOP_TASKS);
    if (!t && (due || budget->run < BUDGET_BATCH || l->io_ns > 0)) {
        queue_take(&l->queues[LOOP_TASKS]);
        t = turn_take(l, LOOP_TASKS);
    }
    if (t) {
        l->tasks_taken++;
        (*from_queue)++;
        t->type->run(t);
        return true;
    }
    if (due)
        turn_run_timer(l, due);
    return due != NULL;
}

/* Step 4: run tasks and timers until none is left or the budget is spent. */
static void turn_run_tasks(struct loop *l)
{
    uint64_t from_queue = 0, leave_each = l->max_pending_tasks / TURN_LEAVE_PART;
    struct budget *budget = &l->budget;

    queue_take(&l->queues[LOOP_TASKS]);
    if (leave_each > TURN_LEAVE_EACH)
        leave_each = TURN_LEAVE_EACH;
    while (turn_run_next(l, budget, &from_queue)) {
        if (from_queue >= leave_each) {
            turn_leave(l, LOOP_TASKS, from_queue);
            from_queue = 0;
        }
        if (!budget_count(budget))
            continue;
        turn_read_clock(l);
        if (budget_spent(budget, l->clock_at_ns))
            break;
    }
    turn_leave(l, LOOP_TASKS, from_queue);
    turn_read_clock(l);
    if (budget->run > 0)
        l->last_task_at_ns = l->clock_at_ns;
}

static unsigned turn_io_ratio(struct loop *l)
{
    unsigned io_ratio = TELEMETRY_GET(l->io_ratio);

    return io_ratio != BUDGET_RATIO_AUTO ? io_ratio
                                         : io_tune_ratio(&l->io_tune, &l->telemetry,
                                                         TELEMETRY_GET(l->goal_ns), l->clock_at_ns);
}

/* Without callbacks, I/O time is only that of the wake-up descriptor and the timer: none. */
static void turn_tasks(struct loop *l)
{
    struct budget_conf conf = {.quantum_ns = l->quantum_ns};
    int64_t began_at_ns = l->clock_at_ns, io_ns = l->io_events > 0 ? l->io_ns : 0;
    bool have_tasks = !queue_empty(&l->queues[LOOP_TASKS]) || l->schedule.n_due > 0;

    if (!have_tasks && l->budget.owed_ns == 0)
        return;
    conf.io_ratio = turn_io_ratio(l);
    budget_begin(&l->budget, &conf, io_ns, began_at_ns, turn_queued(l));
    if (have_tasks && budget_allows_tasks(&l->budget))
        turn_run_tasks(l);
    budget_end(&l->budget, l->clock_at_ns);
    TELEMETRY_ADD(l->telemetry.task_ns, l->clock_at_ns - began_at_ns);
    TELEMETRY_ADD(l->telemetry.tasks_run, l->budget.run);
}

/* Step 5: run only the tasks queued before this step. */
static void turn_tail(struct loop *l)
{
    if (!queue_empty(&l->queues[LOOP_TAIL]))
        (void)turn_queue(l, LOOP_TAIL, gate_count(&l->queues[LOOP_TAIL].gate));
}

/*
 * Step 6: run the reap tasks, also tasks added meanwhile, for as long as the rest of the turn took,
 * at least TURN_REAP_NS and at most quantum_ns. So objects cannot end faster than they are freed.
 * Tasks that are left run in the next turns.
 */
void turn_reap(struct loop *l)
{
    int64_t quantum_ns = l->clock_at_ns - l->turn_at_ns;
    struct budget budget;
    struct task *t;

    if (quantum_ns > l->quantum_ns)
        quantum_ns = l->quantum_ns;
    if (quantum_ns < TURN_REAP_NS)
        quantum_ns = TURN_REAP_NS;
    budget_begin_step(&budget, l->clock_at_ns, quantum_ns, UINT64_MAX);
    while ((t = task_list_take(&l->reap))) {
        turn_enter(l, t->type);
        t->type->run(t);
        if (!budget_count(&budget))
            continue;
        turn_read_clock(l);
        if (budget_spent(&budget, l->clock_at_ns))
            break;
    }
    turn_read_clock(l);
}

static void turn_count(struct loop *l)
{
    int64_t turn_ns = l->clock_at_ns - l->turn_at_ns;

    heard_note_absence(&l->heard, l->turn_at_ns, l->clock_at_ns);
    TELEMETRY_ADD(l->telemetry.turns, 1);
    if (!l->ran)
        TELEMETRY_ADD(l->telemetry.turns_empty, 1);
    if (l->stall_threshold_ns > 0 && turn_ns >= l->stall_threshold_ns)
        TELEMETRY_ADD(l->telemetry.stalls, 1);
    histogram_count(&l->telemetry.turn, turn_ns);
}

/*
 * note: yield. The scheduler may let a running thread use up its time slice of milliseconds before
 * it runs a thread that wakes on the same processor. So loops yield after long turns.
 */
static void turn_yield(const struct loop *l)
{
    if (l->yields && l->clock_at_ns - l->turn_at_ns >= TURN_YIELD_NS)
        sched_yield();
}

bool turn_run(struct loop *l)
{
    turn_poll_run(l);  /* steps 1, 2 */
    turn_fetch_due(l); /* end of step 2 */
    turn_control(l);   /* step 3 */
    turn_poll_count(l);
    turn_tasks(l); /* step 4 */
    turn_tail(l);  /* step 5 */
    turn_reap(l);  /* step 6 */
    turn_count(l);
    turn_poll_judge(l);
    turn_yield(l);
    return turn_stop_run(l); /* step 7 */
}
