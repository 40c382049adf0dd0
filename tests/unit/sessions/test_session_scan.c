/* sessions/session_scan: each task visits a bounded part of the sessions, however many they are. */
#include "engine/loop_stats.h"
#include "service/session.h"
#include "sessions/session_scan.h"
#include "sessions/session_set.h"
#include "support/crowd.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct {
    bool is_long, kills;
    uint64_t task; /* number of the task that runs */
    unsigned in_task, most_in_task, visited;
    atomic_bool done;
} seen;

/* Changes between two tasks: the first is a control task, the others are tail tasks of turns. */
static uint64_t number_of_task(void)
{
    struct loop_stats stats;

    loop_stats(loop_current(), &stats);
    return stats.turns + stats.tasks_run;
}

static bool visit(void *cookie, unsigned part, struct session *s)
{
    uint64_t task = number_of_task();
    int64_t began_at_ns = clock_now_ns();

    (void)cookie;
    (void)part;
    seen.in_task = task == seen.task ? seen.in_task + 1 : 1;
    seen.task = task;
    if (seen.in_task > seen.most_in_task)
        seen.most_in_task = seen.in_task;
    seen.visited++;
    while (seen.is_long && clock_now_ns() - began_at_ns < BUDGET_STEP_NS)
        continue;
    if (seen.kills)
        session_abort(s, SESSION_KILLED);
    return seen.is_long;
}

static void done(void *cookie)
{
    (void)cookie;
    atomic_store(&seen.done, true);
}

static const struct session_scan_ops ops = {.visit = visit, .done = done, .lost = done};

static void begin(void *arg)
{
    (void)arg;
    ck_assert_int_eq(session_scan_begin(&crowd.workers, CROWD_WORKERS, &ops, NULL), 0);
}

static void scan(void)
{
    loop_runner_call(crowd.asker, begin, NULL);
    UNTIL(atomic_load(&seen.done));
}

GROUP(session_scan, crowd_enter, crowd_leave);

TEST(session_scan, a_task_visits_a_step_at_most)
{
    crowd_add(CROWD_MAX, 0);
    scan();
    ck_assert_uint_eq(seen.visited, CROWD_MAX);
    ck_assert_uint_le(seen.most_in_task, SESSION_SET_STEP);
}

TEST(session_scan, a_long_visit_is_the_last_of_its_task)
{
    seen.is_long = true;
    crowd_add(20, 0);
    scan();
    ck_assert_uint_eq(seen.visited, 20);
    ck_assert_uint_eq(seen.most_in_task, 1);
}

TEST(session_scan, sessions_that_end_between_two_tasks_are_left_out)
{
    seen.is_long = seen.kills = true;
    crowd_add(20, 0);
    scan();
    ck_assert_uint_eq(seen.visited, 20);
    UNTIL(atomic_load(&crowd.ended) == 20);
}
