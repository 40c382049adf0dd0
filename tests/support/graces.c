#include "support/graces.h"

#include <check.h>
#include <pthread.h>
#include <semaphore.h>

#include "engine/grace.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"

struct graces graces;

void graces_setup(void)
{
    struct loop_group_conf conf = {
        .name = "work",
        .pool = 2,
        .n_loops = LOOPS,
        .max_loops = 3 * LOOPS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    log_lines_capture(LOG_LEVEL_WARNING); /* a stop that cuts tasks off is worth one */
    ck_assert_int_eq(loop_group_create(&graces.group, &conf), 0);
}

void graces_end_group(void)
{
    loop_group_stop(graces.group, 0, NS_PER_S);
    loop_runner_join_group(graces.group);
}

void graces_teardown(void)
{
    graces_end_group();
    loop_group_destroy(graces.group);
}

static void nothing(void *arg)
{
    (void)arg;
}

void graces_come_round(unsigned i)
{
    loop_runner_call(loop_group_at(graces.group, i), nothing, NULL);
}

void graces_start_all(void)
{
    for (unsigned i = 0; i < LOOPS; i++)
        graces_come_round(i);
}

void graces_on_over(void *cookie)
{
    atomic_store(&graces.over_on, loop_current());
    atomic_fetch_add((atomic_uint *)cookie, 1);
}

void graces_begin(void)
{
    struct grace *grace;

    ck_assert_int_eq(grace_create(&grace, graces.group, graces_on_over, &graces.over), 0);
    grace_begin(grace);
}

/* ${arg}: where overs are counted. */
static void *begin_many(void *arg)
{
    for (int i = 0; i < CALLS; i++) {
        struct grace *grace;

        ck_assert_int_eq(grace_create(&grace, graces.group, graces_on_over, arg), 0);
        grace_begin(grace);
    }
    return NULL;
}

void graces_callers_begin(pthread_t *callers)
{
    for (unsigned i = 0; i < CALLERS; i++) {
        atomic_store(&graces.overs[i], 0);
        pthread_create(&callers[i], NULL, begin_many, &graces.overs[i]);
    }
}

void graces_callers_join(pthread_t *callers)
{
    for (unsigned i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
}
