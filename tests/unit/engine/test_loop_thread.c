/* engine/loop: its thread: when it starts, its name, its processors and its scheduling. */
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop *loop;

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
