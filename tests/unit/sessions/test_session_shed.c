/* sessions/session_shed: a share of the sessions ends, idlest first, spread over the time. */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop_stats.h"
#include "service/session.h"
#include "sessions/session_set.h"
#include "sessions/session_shed.h"
#include "support/crowd.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct session_shed_conf conf;
static atomic_uint answers;
static int64_t told;
static uint64_t tasks_before, tasks_run; /* by the asking loop, until the answer's task */

static uint64_t count_tasks(void)
{
    struct loop_stats stats;

    loop_stats(crowd.asker, &stats);
    return stats.tasks_run;
}

static void on_answer(void *cookie, int64_t n)
{
    ck_assert_ptr_eq(cookie, &conf);
    ck_assert(loop_is_current(crowd.asker));
    tasks_run = count_tasks() - tasks_before;
    told = n;
    atomic_fetch_add(&answers, 1);
}

static void begin(void *arg)
{
    (void)arg;
    tasks_before = count_tasks();
    ck_assert_int_eq(session_shed_begin(&crowd.workers, &conf), 0);
}

static void shed(unsigned percent, int64_t over_ns)
{
    unsigned before = atomic_load(&answers);

    conf.percent = percent;
    conf.over_ns = over_ns;
    loop_runner_call(crowd.asker, begin, NULL);
    UNTIL(atomic_load(&answers) == before + 1);
}

static void setup(void)
{
    crowd_enter();
    conf = (struct session_shed_conf){.answered = on_answer, .cookie = &conf};
}

static bool has_ended(unsigned i)
{
    struct pollfd p = {.fd = crowd.clients[i], .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

GROUP(session_shed, setup, crowd_leave);

TEST(session_shed, the_idlest_of_all_workers_end_and_the_others_stay)
{
    crowd_add(300, 0);
    crowd_add(300, 1);
    PAUSE_MS(20);
    for (unsigned i = 0; i < 600; i += 2) {
        sockets_say(crowd.clients[i], "x");
        sockets_hear(crowd.clients[i], "x");
    }
    shed(50, 0);
    ck_assert_int_eq(told, 300);
    UNTIL(atomic_load(&crowd.ended) == 300);
    for (unsigned i = 0; i < 600; i++)
        ck_assert_int_eq(has_ended(i), i % 2);
}

TEST(session_shed, the_idlest_are_chosen_in_steps)
{
    crowd_add(CROWD_MAX, 0);
    shed(100, UNTIL_LIMIT_NS);
    ck_assert_int_eq(told, CROWD_MAX);
    /* begin(), all steps, of which the first is that of the first scan's end */
    ck_assert_uint_ge(tasks_run, 1 + 1 + CROWD_MAX / SESSION_SET_STEP);
}

TEST(session_shed, sessions_that_end_between_the_two_scans_are_left_out)
{
    struct tasks_block block;

    crowd_add(20, 0);
    crowd_add(20, 1);
    conf.percent = 100;
    conf.over_ns = UNTIL_LIMIT_NS;
    loop_runner_call(crowd.asker, begin, NULL);
    tasks_block_begin(&block, crowd.asker); /* most often between the two scans */
    for (unsigned i = 0; i < 40; i += 2)
        shutdown(crowd.clients[i], SHUT_RDWR);
    UNTIL(atomic_load(&crowd.ended) == 20);
    tasks_block_end(&block);
    UNTIL(atomic_load(&answers) == 1);
    ck_assert_int_ge(told, 20);
    shed(100, 0);
    ck_assert_int_eq(told, 20);
    UNTIL(atomic_load(&crowd.ended) == 40);
}

TEST(session_shed, number_of_sessions_is_rounded_up)
{
    crowd_add(3, 0);
    shed(1, 0);
    ck_assert_int_eq(told, 1);
    UNTIL(atomic_load(&crowd.ended) == 1);
}

static struct {
    atomic_uint n;
    int64_t at_ns[CROWD_MAX];
    atomic_bool done;
} ends;

static bool note_end(void *cookie, unsigned part, struct session *s)
{
    (void)cookie;
    (void)part;
    ends.at_ns[atomic_fetch_add(&ends.n, 1)] = s->expires_at_ns;
    return false;
}

static void noted(void *cookie)
{
    (void)cookie;
    atomic_store(&ends.done, true);
}

static const struct session_scan_ops note_ops = {.visit = note_end, .done = noted, .lost = noted};

static void note_ends(void *arg)
{
    (void)arg;
    ck_assert_int_eq(session_scan_begin(&crowd.workers, CROWD_WORKERS, &note_ops, NULL), 0);
}

static int compare_ns(const void *a, const void *b)
{
    return (*(const int64_t *)a > *(const int64_t *)b) -
           (*(const int64_t *)a < *(const int64_t *)b);
}

TEST(session_shed, ends_are_spread_over_the_time)
{
    const int64_t step_ns = 100 * NS_PER_S;
    int64_t began_at_ns, answered_at_ns;

    crowd_add(10, 0);
    crowd_add(10, 1);
    began_at_ns = clock_now_ns();
    shed(100, 20 * step_ns);
    answered_at_ns = clock_now_ns();
    ck_assert_int_eq(told, 20);
    loop_runner_call(crowd.asker, note_ends, NULL);
    UNTIL(atomic_load(&ends.done));
    ck_assert_uint_eq(atomic_load(&ends.n), 20);
    qsort(ends.at_ns, 20, sizeof(ends.at_ns[0]), compare_ns);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_ge(ends.at_ns[i], began_at_ns + (i + 1) * step_ns);
        ck_assert_int_le(ends.at_ns[i], answered_at_ns + (i + 1) * step_ns);
    }
}

TEST(session_shed, no_session_ends_before_its_time)
{
    int64_t began_at_ns;

    crowd_add(10, 0);
    began_at_ns = clock_now_ns();
    shed(100, NS_PER_S);
    UNTIL(atomic_load(&crowd.ended) >= 5);
    ck_assert_int_ge(since_ms(began_at_ns), 500);
    UNTIL(atomic_load(&crowd.ended) == 10);
    ck_assert_int_ge(since_ms(began_at_ns), 1000);
}

TEST(session_shed, sessions_already_chosen_are_not_chosen_again)
{
    crowd_add(4, 0);
    shed(50, UNTIL_LIMIT_NS);
    ck_assert_int_eq(told, 2);
    shed(100, UNTIL_LIMIT_NS);
    ck_assert_int_eq(told, 2);
    shed(100, 0);
    ck_assert_int_eq(told, 4);
    UNTIL(atomic_load(&crowd.ended) == 4);
}

TEST(session_shed, sessions_begun_later_stay_open)
{
    crowd_add(4, 0);
    shed(100, NS_PER_S / 2);
    crowd_add(4, 0);
    UNTIL(atomic_load(&crowd.ended) == 4);
    sockets_say(crowd.clients[7], "x");
    sockets_hear(crowd.clients[7], "x");
}

TEST(session_shed, without_sessions_there_is_an_answer)
{
    shed(100, 0);
    ck_assert_int_eq(told, 0);
}
