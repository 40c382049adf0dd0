/* engine/loop: the thread that starts by itself, and who has a task after it was submitted. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop *loop;
static struct tasks_block block;

static void setup(void)
{
    loop = loop_runner_create();
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

static int submit(struct tasks_counted *t)
{
    return loop_submit(loop, LOOP_TASKS, &t->task);
}

static void nothing(void *arg)
{
    (void)arg;
}

GROUP(loop, setup, teardown);

TEST(loop, a_new_loop_has_no_thread)
{
    UNTIL(process_loops() == 0);
    ck_assert_int_eq(loop_state(loop), LOOP_NOT_STARTED);
    ck_assert_str_eq(loop_name(loop), "test");
    ck_assert_ptr_null(loop_current());
    ck_assert(!loop_is_current(loop));
}

TEST(loop, the_first_task_starts_the_only_thread)
{
    struct tasks_counted tasks[10];

    for (int i = 0; i < 10; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(submit(&tasks[i]), 0);
    }
    UNTIL(atomic_load(&tasks[9].run) == 1);
    UNTIL(process_loops() == 1);
    ck_assert_uint_eq(fault_calls(FAULT_PTHREAD_CREATE), 1);
    ck_assert_int_eq(loop_state(loop), LOOP_STARTED);
}

static void look_at_thread(void *arg)
{
    prctl(PR_GET_NAME, arg);
    ck_assert(loop_is_current(loop));
    ck_assert_ptr_eq(loop_current(), loop);
}

TEST(loop, the_thread_has_the_loops_name_and_knows_its_loop)
{
    char name[16] = "";

    loop_runner_call(loop, look_at_thread, name);
    ck_assert_str_eq(name, "test");
    ck_assert(!loop_is_current(loop));
}

TEST(loop, a_name_longer_than_a_thread_can_have_is_cut)
{
    struct loop_conf conf = {.name = "a-name-of-twenty-six-letters",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 16};
    struct loop *named;

    ck_assert_int_eq(loop_create(&named, &conf), 0);
    ck_assert_str_eq(loop_name(named), "a-name-of-twent");
    loop_destroy(named);
}

static void note_affinity(void *arg)
{
    ck_assert_int_eq(sched_getaffinity(0, sizeof(cpu_set_t), arg), 0);
}

static struct loop *create_pinned(unsigned cpu)
{
    struct loop_conf conf = {.name = "pinned",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 16,
                             .affinity = {.pinned = true, .cpu = cpu}};
    struct loop *pinned;

    ck_assert_int_eq(loop_create(&pinned, &conf), 0);
    return pinned;
}

TEST(loop, a_pinned_loop_stays_on_its_processor_and_others_go_anywhere)
{
    struct loop *pinned;
    cpu_set_t ours, set;
    unsigned cpu = 0;

    note_affinity(&ours);
    while (!CPU_ISSET(cpu, &ours))
        cpu++;
    pinned = create_pinned(cpu);
    loop_runner_call(pinned, note_affinity, &set);
    ck_assert_int_eq(CPU_COUNT(&set), 1);
    ck_assert(CPU_ISSET(cpu, &set));
    loop_runner_call(loop, note_affinity, &set);
    ck_assert(CPU_EQUAL(&set, &ours));
    loop_runner_destroy(pinned);
}

static const unsigned no_cpus[] = {CPU_SETSIZE - 1, CPU_SETSIZE, 0xffffffffu};

TEST_EACH(loop, a_processor_that_is_not_there_is_logged_and_the_loop_runs_anywhere,
          ARRAY_LEN(no_cpus))
{
    struct loop *pinned = create_pinned(no_cpus[_i]);
    cpu_set_t ours, set;

    log_lines_capture(LOG_LEVEL_WARNING);
    note_affinity(&ours);
    loop_runner_call(pinned, note_affinity, &set);
    ck_assert(CPU_EQUAL(&set, &ours));
    EXPECT_LOG_LINES("thread pinned: cannot be pinned to processor", 1);
    loop_runner_destroy(pinned);
}

static void note_policy(void *arg)
{
    *(int *)arg = sched_getscheduler(0);
}

static int policy_of(enum affinity_scheduling scheduling)
{
    struct loop_conf conf = {.name = "batch",
                             .budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                             .max_pending_tasks = 16,
                             .affinity.scheduling = scheduling};
    struct loop *l;
    int policy;

    ck_assert_int_eq(loop_create(&l, &conf), 0);
    loop_runner_call(l, note_policy, &policy);
    loop_runner_destroy(l);
    return policy;
}

TEST(loop, loop_has_the_configured_scheduling_policy)
{
    ck_assert_int_eq(policy_of(AFFINITY_INHERIT), SCHED_OTHER);
    ck_assert_int_eq(policy_of(AFFINITY_BATCH), SCHED_BATCH);
    ck_assert_int_eq(sched_getscheduler(0), SCHED_OTHER);
}

static void *start_bound_and_batch(void *arg)
{
    struct sched_param none = {.sched_priority = 0};
    cpu_set_t one;

    note_affinity(&one);
    for (unsigned cpu = 0; CPU_COUNT(&one) > 1; cpu++)
        CPU_CLR(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_int_eq(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    loop_runner_call(loop, note_affinity, arg);
    return NULL;
}

static void *start_loop(void *arg)
{
    loop_runner_call(loop, note_affinity, arg);
    return NULL;
}

/* As `taskset -a -p` does while some loops have no thread yet. */
TEST(loop, loop_started_later_gets_the_current_affinity_of_the_main_thread)
{
    cpu_set_t before, one, set;
    pthread_t starter;
    struct loop *first = loop_runner_create();

    note_affinity(&before);
    if (CPU_COUNT(&before) < 2)
        return; /* nothing can change */
    loop_runner_call(first, note_affinity, &set);
    ck_assert(CPU_EQUAL(&set, &before));
    one = before;
    for (unsigned cpu = 0; CPU_COUNT(&one) > 1; cpu++)
        CPU_CLR(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(getpid(), sizeof(one), &one), 0);
    pthread_create(&starter, NULL, start_loop, &set);
    pthread_join(starter, NULL);
    ck_assert(CPU_EQUAL(&set, &one));
    loop_runner_destroy(first);
}

TEST(loop, loop_gets_the_affinity_and_policy_of_its_creator_and_not_of_its_starter)
{
    cpu_set_t ours, set;
    pthread_t bound;
    int policy;

    note_affinity(&ours);
    pthread_create(&bound, NULL, start_bound_and_batch, &set);
    pthread_join(bound, NULL);
    loop_runner_call(loop, note_policy, &policy);
    ck_assert(CPU_EQUAL(&set, &ours));
    ck_assert_int_eq(policy, SCHED_OTHER);
}

TEST(loop, scheduling_policy_of_the_process_is_kept)
{
    struct sched_param none = {.sched_priority = 0};

    ck_assert_int_eq(sched_setscheduler(0, SCHED_IDLE, &none), 0);
    ck_assert_int_eq(policy_of(AFFINITY_BATCH), SCHED_IDLE);
}

TEST(loop, tasks_of_one_thread_run_once_and_in_order)
{
    struct tasks_trace trace = {.len = 0};
    struct tasks_traced tasks[26];

    for (int i = 0; i < 26; i++) {
        tasks_traced_init(&tasks[i], &trace, (char)('a' + i));
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &tasks[i].task), 0);
    }
    loop_runner_destroy(loop);
    ck_assert_str_eq(trace.text, "abcdefghijklmnopqrstuvwxyz");
    setup();
}

TEST(loop, sleeping_loop_is_woken_by_one_system_call)
{
    struct tasks_counted t;
    struct loop_stats before, after;

    tasks_counted_init(&t);
    observe_until_asleep(loop);
    loop_stats(loop, &before);
    ck_assert_int_eq(submit(&t), 0);
    UNTIL(atomic_load(&t.run) == 1);
    loop_stats(loop, &after);
    ck_assert_uint_eq(after.wakeups_sent, before.wakeups_sent + 1);
}

TEST(loop, a_busy_loop_costs_no_system_call)
{
    struct tasks_counted tasks[1000];
    struct loop_stats before, after;

    tasks_block_begin(&block, loop);
    loop_stats(loop, &before);
    for (int i = 0; i < 1000; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(submit(&tasks[i]), 0);
    }
    loop_stats(loop, &after);
    tasks_block_end(&block);
    ck_assert_uint_eq(after.wakeups_sent, before.wakeups_sent);
    UNTIL(atomic_load(&tasks[999].run) == 1);
}

/*
 * What a task that submits another one sees of the loop at the time, and what that other one sees.
 */
struct relay {
    struct task first, second;
    struct loop_stats at_first, at_second;
    atomic_bool done;
};

static void relay_second(struct task *t)
{
    struct relay *r = CONTAINER_OF(t, struct relay, second);

    loop_stats(loop, &r->at_second);
    atomic_store(&r->done, true);
}

static void relay_first(struct task *t)
{
    static const struct task_type type = {.name = "second", .run = relay_second};
    struct relay *r = CONTAINER_OF(t, struct relay, first);

    r->second.type = &type;
    loop_stats(loop, &r->at_first);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &r->second), 0);
}

TEST(loop, a_task_submitted_by_a_task_runs_before_the_loop_sleeps)
{
    static const struct task_type type = {.name = "first", .run = relay_first};
    struct relay r = {.first.type = &type};

    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &r.first), 0);
    UNTIL(atomic_load(&r.done));
    ck_assert_uint_eq(r.at_second.polls_blocking, r.at_first.polls_blocking);
    ck_assert_uint_eq(r.at_second.wakeups_sent, r.at_first.wakeups_sent);
}

TEST(loop, lazy_task_runs_in_the_next_turn_and_wakes_no_loop)
{
    struct tasks_trace trace = {.len = 0};
    struct tasks_traced lazy, normal;
    struct loop_stats before, after;

    tasks_traced_init(&lazy, &trace, 'l');
    tasks_traced_init(&normal, &trace, 'n');
    observe_until_asleep(loop);
    loop_stats(loop, &before);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &lazy.task), 0);
    PAUSE_MS(100);
    loop_stats(loop, &after);
    ck_assert_uint_eq(after.turns, before.turns);
    ck_assert_uint_eq(after.wakeups_sent, before.wakeups_sent);
    ck_assert_uint_eq(after.tasks_pending, 1);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &normal.task), 0);
    loop_runner_destroy(loop);
    ck_assert_str_eq(trace.text, "ln");
    setup();
}

TEST(loop, a_lazy_task_starts_a_loop_that_has_no_thread)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &t.task), 0);
    UNTIL(atomic_load(&t.run) == 1);
}

TEST(loop, waiting_tasks_are_counted)
{
    struct tasks_counted tasks[5];
    struct loop_stats stats;

    tasks_block_begin(&block, loop);
    for (int i = 0; i < 5; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(submit(&tasks[i]), 0);
    }
    loop_stats(loop, &stats);
    ck_assert_uint_eq(stats.tasks_pending, 6); /* with the one that runs */
    tasks_block_end(&block);
    UNTIL(atomic_load(&tasks[4].run) == 1);
    UNTIL((loop_stats(loop, &stats), stats.tasks_pending == 0));
    ck_assert_uint_eq(stats.tasks_run, 6);
    ck_assert_uint_eq(stats.tasks_dropped, 0);
}

TEST(loop, load_is_the_sum_of_the_changes)
{
    struct loop_stats stats;

    loop_load_add(loop, 3);
    loop_load_add(loop, -1);
    ck_assert_uint_eq(loop_load(loop), 2);
    loop_stats(loop, &stats);
    ck_assert_uint_eq(stats.connections, 2);
}

TEST(loop, a_cookie_is_kept)
{
    ck_assert_ptr_null(loop_cookie(loop));
    loop_set_cookie(loop, &block);
    ck_assert_ptr_eq(loop_cookie(loop), &block);
}

TEST(loop, the_event_library_is_named)
{
    char text[64];

    loop_backend_text(text, sizeof(text));
    ck_assert_msg(strncmp(text, "libev 4.", 8) == 0 && strstr(text, "(epoll)"), "%s", text);
}

TEST(loop, thread_that_cannot_start_leaves_the_task_to_the_caller)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 2, EAGAIN);
    ck_assert_int_eq(submit(&t), -EAGAIN);
    ck_assert_int_eq(loop_state(loop), LOOP_NOT_STARTED);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &t.task), -EAGAIN);
    ck_assert_int_eq(loop_state(loop), LOOP_NOT_STARTED);
    ck_assert_uint_eq(atomic_load(&t.run) + atomic_load(&t.dropped), 0);
    ck_assert_int_eq(submit(&t), 0); /* now there is a thread */
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}

TEST(loop, loop_whose_thread_could_not_start_can_be_stopped)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(submit(&t), -EAGAIN);
    loop_runner_stop(loop);
    ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
    ck_assert_int_eq(submit(&t), -ESHUTDOWN);
}

TEST_EACH(loop, loop_without_descriptors_is_not_created_and_leaks_none, 2)
{
    struct loop_conf conf = {.name = "none", .max_pending_tasks = 16};
    unsigned before = process_descriptors();
    struct loop *none;

    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(loop_create(&none, &conf), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST_EACH(loop, a_destroyed_loop_gives_its_descriptors_back, 2)
{
    unsigned before = process_descriptors();
    struct loop *other = loop_runner_create();

    if (_i)
        loop_runner_call(other, nothing, NULL);
    loop_runner_destroy(other);
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST_ABORTS(loop, scheduling_from_another_thread_is_a_bug)
{
    struct timer t;

    loop_schedule(loop, &t, 0);
}

static void join_it(void *arg)
{
    loop_runner_join(arg);
}

TEST_ABORTS(loop, waiting_for_a_loop_on_a_loop_is_a_bug)
{
    loop_runner_call(loop, join_it, loop);
}
