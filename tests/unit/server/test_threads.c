/* server/threads: the loops that a configuration asks for, or the reason why not. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "server/server_conf.h"
#include "server/threads.h"
#include "support/log_lines.h"
#include "support/server_confs.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct server_conf conf;

/* cpu.max of the control group of this process; "": as it is. */
static char cpu_max[64];

FILE *fopen(const char *path, const char *mode)
{
    static char group[] = "0::/\n", mount[] = "33 20 0:32 / /quota rw - cgroup2 cgroup2 rw\n";
    const struct {
        const char *path;
        char *text;
    } files[] = {
        {"/proc/self/cgroup", group}, {"/proc/self/mountinfo", mount}, {"/quota/cpu.max", cpu_max}};
    FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (*cpu_max != '\0' && strcmp(path, files[i].path) == 0)
            return fmemopen(files[i].text, strlen(files[i].text), "r");
    return next(path, mode);
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    conf = (struct server_conf){.boss = {.threads = 1},
                                .worker = {.threads = {.n = 3},
                                           .io_ratio = 50,
                                           .task_quantum_ns = NS_PER_MS,
                                           .max_pending_tasks = 64},
                                SMALL_EXECUTORS(1)};
}

GROUP(threads, setup, NULL);

TEST(threads, number_of_loops_is_as_configured)
{
    struct threads threads;

    ck_assert_int_eq(threads_create(&threads, &conf), 0);
    ck_assert_uint_eq(loop_group_size(threads.boss), 1);
    ck_assert_uint_eq(loop_group_size(threads.workers), 3);
    ck_assert_uint_eq(loop_group_size(threads.control), 1);
    threads_destroy(&threads);
}

TEST(threads, each_loop_is_listed)
{
    struct threads threads;
    struct loop **list;
    unsigned n = 7; /* of an earlier list */

    ck_assert_int_eq(threads_create(&threads, &conf), 0);
    list = threads_loops(&threads, &n);
    ck_assert_uint_eq(n, 5);
    ck_assert_ptr_eq(list[0], loop_group_at(threads.boss, 0));
    for (unsigned i = 0; i < 3; i++)
        ck_assert_ptr_eq(list[1 + i], loop_group_at(threads.workers, i));
    ck_assert_ptr_eq(list[4], threads_control(&threads));
    free(list);
    threads_destroy(&threads);
}

TEST_EACH(threads, a_processor_outside_the_affinity_mask_is_an_error, 2)
{
    unsigned none = 1u << 20;
    struct server_cpus cpus = {.affinity = SERVER_AFFINITY_LIST, .list = &none, .n = 1};
    struct threads threads;

    *(_i == 0 ? &conf.boss.cpus : &conf.worker.cpus) = cpus;
    ck_assert_int_eq(threads_create(&threads, &conf), -EINVAL);
    EXPECT_LOG_LINES(_i == 0 ? "[boss] cpu_affinity: this process cannot use processor 1048576: "
                             : "[worker] cpu_affinity: this process cannot use processor 1048576: ",
                     1);
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

TEST(threads, a_processor_that_was_taken_from_the_process_may_not_be_named)
{
    struct threads threads;
    unsigned named = 0;
    cpu_set_t set;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    if (CPU_COUNT(&set) < 2)
        return;
    while (!CPU_ISSET(named, &set))
        named++;
    CPU_CLR(named, &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    conf.worker.cpus =
        (struct server_cpus){.affinity = SERVER_AFFINITY_LIST, .list = &named, .n = 1};
    ck_assert_int_eq(threads_create(&threads, &conf), -EINVAL);
}

/* 0: no quota; 1: as many processors as there are; 2: half of one. */
TEST_EACH(threads, there_are_two_workers_for_each_processor_of_the_quota, 3)
{
    struct threads threads;
    unsigned processors;
    cpu_set_t set;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    processors = (unsigned)CPU_COUNT(&set);
    if (_i == 0)
        snprintf(cpu_max, sizeof(cpu_max), "max 100000\n");
    else
        snprintf(cpu_max, sizeof(cpu_max), "%u 100000\n", _i == 1 ? processors * 100000 : 50000);
    conf.worker.threads.n = 0;
    ck_assert_int_eq(threads_create(&threads, &conf), 0);
    ck_assert_uint_eq(loop_group_size(threads.workers), _i == 2 ? 1 : 2 * processors);
    EXPECT_LOG_LINES(": the control group's quota is 0.50 processors", _i == 2);
    EXPECT_LOG_LINES("quota", _i == 2);
    threads_destroy(&threads);
}

static void end_threads(struct threads *threads)
{
    ck_assert_int_eq(threads_end_boss(threads), 0);
    ck_assert_int_eq(threads_end_workers(threads), 0);
    ck_assert_int_eq(threads_end_control(threads), 0);
    ck_assert_int_eq(threads_end_executors(threads), 0);
    threads_destroy(threads);
}

/* 0: the boss; 1 to 3: the workers; 4: control. */
TEST_EACH(threads, stall_of_any_loop_is_detected, 5)
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
    EXPECT_LOG_LINES("stalled: ", 1);
    tasks_block_end(&block);
    end_threads(&threads);
}

/* 0: a boss that a reload adds; 1, 2: workers. */
TEST_EACH(threads, stall_of_a_loop_added_by_a_reload_is_detected, 3)
{
    struct threads_change change;
    struct threads threads;
    struct tasks_block block;

    conf.worker.stall_threshold_ns = 10 * NS_PER_MS;
    ck_assert_int_eq(threads_create(&threads, &conf), 0);
    ck_assert_int_eq(threads_prepare(&threads, 2, 5, &change), 0);
    threads_commit(&threads, &change);
    tasks_block_begin(&block, _i == 0 ? loop_group_at(threads.boss, 1)
                                      : loop_group_at(threads.workers, 2 + (unsigned)_i));
    UNTIL(!threads_watch(&threads));
    EXPECT_LOG_LINES("stalled: ", 1);
    tasks_block_end(&block);
    end_threads(&threads);
}
