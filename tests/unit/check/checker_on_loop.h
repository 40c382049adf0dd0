/* check/checker_on_loop: a checker on its loop, its endpoints, and what it tells of them. */
#ifndef UNIT_CHECK_CHECKER_ON_LOOP_H
#define UNIT_CHECK_CHECKER_ON_LOOP_H

#include "check/checker.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/suite.h"

#define ENDPOINTS 1000
#define LATER_NS  (1000 * NS_PER_S)

static struct loop *loop;
static struct netloop *net;
static struct checker *checker;
static struct checker_rules_conf rules_conf;
static struct checker_group *group;
static struct checker_target *targets[ENDPOINTS];
static struct endpoint endpoints[ENDPOINTS];
static _Atomic uint32_t loads[ENDPOINTS];
static struct endpoint_group group_of_all;
static unsigned before;
static struct checker_stats stats;

static inline void do_use(void *arg)
{
    struct checker_rules *rules;

    (void)arg;
    ck_assert_int_eq(checker_rules_create(&rules, &rules_conf), 0);
    checker_group_use(group, rules);
}

static inline void do_load(void *arg)
{
    checker_load(checker, arg);
}

static inline void do_stats(void *arg)
{
    unsigned *n = arg;

    checker_stats(targets[*n], &stats);
}

static inline void on_loop(void (*function)(void *), unsigned n)
{
    loop_runner_call(loop, function, &n);
}

static inline struct checker_load load_now(void)
{
    struct checker_load load;

    loop_runner_call(loop, do_load, &load);
    return load;
}

static inline void do_undecided(void *arg)
{
    unsigned *n = arg;

    *n = checker_group_undecided(group);
}

static inline unsigned undecided_now(void)
{
    unsigned n;

    loop_runner_call(loop, do_undecided, &n);
    return n;
}

static inline uint64_t checks_of(unsigned n)
{
    on_loop(do_stats, n);
    return stats.checks;
}

static inline void set_address(unsigned n, const struct address *a)
{
    ck_assert_int_ge(endpoint_set_addresses(&endpoints[n], NULL, a, 1), 0);
}

/* A loop, and endpoints that are not checked yet. */
static inline void loop_setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    before = process_descriptors();
    for (unsigned i = 0; i < ENDPOINTS; i++)
        endpoints[i] = (struct endpoint){.name = "a",
                                         .weight = 1,
                                         .load = &loads[i],
                                         .group = &group_of_all,
                                         .is_checked = true};
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
}

static inline void teardown(void)
{
    if (loop_state(loop) != LOOP_TERMINATED)
        loop_runner_stop(loop);
    checker_destroy(checker);
    netloop_destroy(net);
    loop_destroy(loop);
    for (unsigned i = 0; i < ENDPOINTS; i++) {
        checker_target_destroy(targets[i]);
        endpoint_close(&endpoints[i]);
    }
    ck_assert_uint_eq(process_descriptors(), before);
}

#endif
