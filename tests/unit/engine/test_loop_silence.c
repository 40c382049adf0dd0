/*
 * engine/loop, its silence timers: what has come before their instant is read first, even if a poll
 * was interrupted or libev's array of events is too short.
 */
#include <errno.h>

#include "engine/loop_internal.h"
#include "support/bell.h"
#include "support/fault.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/until.h"

#define MANY 300

static struct loop *loop;
static struct bell bells[MANY];
static unsigned n_bells;
static atomic_bool stopped;

struct judge {
    struct timer timer;
    unsigned heard; /* bells heard when it ran */
    int64_t heard_ns;
    atomic_bool run;
};

static struct judge judge, other;

static unsigned heard(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_bells; i++)
        n += atomic_load(&bells[i].n_heard) > 0;
    return n;
}

static void judge_run(struct task *t)
{
    struct judge *j = TIMER_OWNER(t, struct judge, timer);

    j->heard = heard();
    j->heard_ns = loop_heard_ns(loop);
    atomic_store(&j->run, true);
}

static const struct task_type judge_type = {.name = "judge", .run = judge_run};

static void setup(void)
{
    loop = loop_runner_create();
    atomic_store(&stopped, false);
    judge = other = (struct judge){.heard = 0};
    timer_init_silence(&judge.timer, &judge_type);
    timer_init(&other.timer, &judge_type);
}

static void teardown(void)
{
    atomic_store(&stopped, true);
    for (unsigned i = 0; i < n_bells; i++)
        bell_close(&bells[i]);
    n_bells = 0;
    loop_runner_destroy(loop);
}

static void open_bells(unsigned n, void (*on_heard)(struct bell *b))
{
    for (n_bells = 0; n_bells < n; n_bells++)
        bell_open(&bells[n_bells], loop, on_heard);
    observe_until_asleep(loop);
}

/* On the loop: all bells ring, and the timers are due now. */
static void ring_and_judge(void *arg)
{
    const int *error = arg;

    for (unsigned i = 0; i < n_bells; i++)
        bell_ring(&bells[i]);
    loop_schedule(loop, &judge.timer, 0);
    if (error)
        fault_plan(FAULT_EPOLL_WAIT, 0, 2, *error); /* step 3 may poll, too */
}

GROUP(silence, setup, teardown);

TEST(silence, poll_ended_by_a_signal_does_not_prove_silence)
{
    int error = EINTR;

    open_bells(1, NULL);
    loop_runner_call(loop, ring_and_judge, &error);
    UNTIL(atomic_load(&judge.run));
    ck_assert_uint_eq(judge.heard, 1);
}

TEST(silence, full_array_of_events_does_not_prove_silence)
{
    open_bells(MANY, NULL);
    loop_runner_call(loop, ring_and_judge, NULL);
    UNTIL(atomic_load(&judge.run));
    ck_assert_uint_eq(judge.heard, MANY);
    ck_assert_int_ge(judge.heard_ns, judge.timer.at_ns);
}

static void ring_again(struct bell *b)
{
    if (!atomic_load(&stopped))
        bell_ring(b);
}

TEST(silence, loop_that_always_has_many_events_judges_silence)
{
    open_bells(MANY, ring_again);
    loop_runner_call(loop, ring_and_judge, NULL);
    UNTIL(atomic_load(&judge.run));
    ck_assert_uint_eq(judge.heard, MANY);
}

static void judge_both(void *arg)
{
    (void)arg;
    ring_and_judge(NULL);
    loop_schedule(loop, &other.timer, 0);
}

TEST(silence, other_timers_do_not_wait_for_input)
{
    open_bells(MANY, ring_again);
    loop_runner_call(loop, judge_both, NULL);
    UNTIL(atomic_load(&judge.run));
    ck_assert(atomic_load(&other.run));
    ck_assert_uint_lt(other.heard, MANY);
}

TEST(silence, silence_is_judged_while_polls_fail)
{
    fault_plan(FAULT_EPOLL_WAIT, 0, FAULT_ALWAYS, EBADF);
    loop_runner_call(loop, ring_and_judge, NULL);
    UNTIL(atomic_load(&judge.run));
    fault_plan(FAULT_EPOLL_WAIT, 0, 0, 0);
}

/* ---- a long turn: the loop was away ---- */

GROUP(away, setup, teardown);

static int64_t began_at_ns, ended_at_ns, due_at_ns;

static void take_long(void *arg)
{
    (void)arg;
    began_at_ns = loop_now_ns(loop);
    PAUSE_MS(2 * HEARD_ABSENCE_NS / NS_PER_MS);
    ended_at_ns = clock_now_ns();
}

/* The process is stopped when it is about to poll, so that no signal ends the poll. */
static void ring_and_go(void *arg)
{
    (void)arg;
    began_at_ns = clock_now_ns();
    loop_schedule(loop, &judge.timer, NS_PER_MS);
    bell_ring(&bells[0]);
    fault_plan(FAULT_EPOLL_WAIT, 0, 1, FAULT_SLOW);
}

/* Longer than a busy machine keeps the loop from its poll, shorter than the poll is late. */
#define LIMIT_NS (200 * NS_PER_MS)

static void look_due_when_heard(struct bell *b)
{
    (void)b;
    due_at_ns = loop_due_ns(loop, began_at_ns, LIMIT_NS);
    ended_at_ns = clock_now_ns();
}

TEST(away, callbacks_of_a_poll_that_returns_late_see_the_extended_deadline)
{
    open_bells(1, look_due_when_heard);
    loop_runner_call(loop, ring_and_go, NULL);
    UNTIL(heard() == 1);
    observe_until_asleep(loop);
    ck_assert_int_ge(due_at_ns, began_at_ns + FAULT_SLOW_MS * NS_PER_MS);
    ck_assert_int_le(due_at_ns, ended_at_ns + LIMIT_NS);
}

static void look_run(struct task *t)
{
    due_at_ns = loop_due_ns(loop, began_at_ns, NS_PER_MS);
    ended_at_ns = clock_now_ns();
    atomic_store(&TIMER_OWNER(t, struct judge, timer)->run, true);
}

static const struct task_type look_type = {.name = "look", .run = look_run};

/* The only timer is due in a second, and the poll returns late. */
static void sleep_long(void *arg)
{
    (void)arg;
    began_at_ns = clock_now_ns();
    other.timer.task.type = &look_type;
    loop_schedule(loop, &other.timer, NS_PER_S);
    fault_plan(FAULT_EPOLL_WAIT, 0, 1, FAULT_SLOW);
}

TEST(away, deadline_early_in_a_sleep_is_not_extended_by_a_late_end)
{
    int64_t late_ns;

    loop_runner_call(loop, sleep_long, NULL);
    UNTIL(atomic_load(&other.run));
    late_ns = ended_at_ns - (began_at_ns + NS_PER_S);
    if (late_ns >= FAULT_SLOW_MS * NS_PER_MS && late_ns < NS_PER_S / 2) /* not on a busy machine */
        ck_assert_int_lt(due_at_ns, began_at_ns + NS_PER_S);
}

static void look_due(void *arg)
{
    due_at_ns = loop_due_ns(loop, began_at_ns, *(int64_t *)arg);
}

static void look_due_late(void *arg)
{
    take_long(NULL);
    look_due(arg);
}

TEST(away, a_deadline_judged_late_in_a_long_turn_is_extended)
{
    int64_t limit_ns = NS_PER_MS;

    loop_runner_call(loop, look_due_late, &limit_ns);
    ck_assert_int_ge(due_at_ns, ended_at_ns + limit_ns);
}

TEST(away, a_time_stamp_of_a_long_turn_means_its_end)
{
    int64_t limit_ns = NS_PER_MS;

    loop_runner_call(loop, take_long, NULL);
    loop_runner_turn(loop);
    loop_runner_call(loop, look_due, &limit_ns);
    ck_assert_int_ge(due_at_ns, ended_at_ns + limit_ns);
}
