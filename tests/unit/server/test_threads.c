/* server/threads: the loops that a configuration asks for, or the reason why not. */
#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "server/server.h"
#include "server/threads.h"
#include "support/log_lines.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct server_conf conf;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    conf = (struct server_conf){.boss = {.threads = 1},
                                .worker = {.threads = 3,
                                           .io_ratio = 50,
                                           .task_quantum_ns = NS_PER_MS,
                                           .max_pending_tasks = 64},
                                .executor = {.threads = 1, .max_pending_tasks = 16}};
}

GROUP(threads, setup, NULL);

TEST(threads, there_are_as_many_loops_as_were_asked_for)
{
    struct threads threads;

    ck_assert_int_eq(threads_create(&threads, &conf), 0);
    ck_assert_uint_eq(loop_group_size(threads.boss), 1);
    ck_assert_uint_eq(loop_group_size(threads.workers), 3);
    ck_assert_uint_eq(loop_group_size(threads.control), 1);
    threads_destroy(&threads);
}

TEST_EACH(threads, a_processor_that_the_process_may_not_use_is_an_error, 2)
{
    unsigned none = 1u << 20;
    struct server_cpus cpus = {.affinity = SERVER_AFFINITY_LIST, .list = &none, .n = 1};
    struct threads threads;

    *(_i == 0 ? &conf.boss.cpus : &conf.worker.cpus) = cpus;
    ck_assert_int_eq(threads_create(&threads, &conf), -EINVAL);
    ck_assert_uint_eq(log_lines_with("processor 1048576 is not one that this process may use"), 1);
}

TEST(threads, every_processor_that_the_process_may_use_may_be_named)
{
    unsigned named;
    cpu_set_t set;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    conf.worker.cpus =
        (struct server_cpus){.affinity = SERVER_AFFINITY_LIST, .list = &named, .n = 1};
    for (named = 0; named < CPU_SETSIZE; named++) {
        struct threads threads;

        if (!CPU_ISSET(named, &set))
            continue;
        ck_assert_int_eq(threads_create(&threads, &conf), 0);
        threads_destroy(&threads);
    }
}

/* 0: the boss; 1 to 3: the workers; 4: control. */
TEST_EACH(threads, loop_that_stalls_is_seen_whichever_it_is, 5)
{
    struct threads threads;
    struct tasks_block block;
    struct loop *loop;

    conf.worker.stall_threshold_ns = 10 * NS_PER_MS;
    ck_assert_int_eq(threads_create(&threads, &conf), 0);
    loop = _i == 0   ? loop_group_at(threads.boss, 0)
           : _i <= 3 ? loop_group_at(threads.workers, (unsigned)_i - 1)
                     : threads_control(&threads);
    ck_assert(threads_watch(&threads)); /* no loop has a thread */
    tasks_block_begin(&block, loop);
    UNTIL(!threads_watch(&threads));
    ck_assert_uint_eq(log_lines_with("stalls: "), 1);
    tasks_block_end(&block);
    ck_assert_int_eq(threads_end_boss(&threads), 0);
    ck_assert_int_eq(threads_end_workers(&threads), 0);
    ck_assert_int_eq(threads_end_control(&threads), 0);
    ck_assert_int_eq(threads_end_executor(&threads), 0);
    threads_destroy(&threads);
}
