/* sessions/session_kill: what is selected is reset on each worker, and counted. */
#include "sessions/session_filter.h"
#include "sessions/session_kill.h"
#include "support/crowd.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct session_filter filter;
static atomic_uint answers;
static uint64_t killed;

static void on_answer(void *cookie, uint64_t n)
{
    ck_assert_ptr_eq(cookie, &filter);
    killed = n;
    atomic_fetch_add(&answers, 1);
}

static void begin(void *arg)
{
    (void)arg;
    ck_assert_int_eq(session_kill_begin(&crowd.workers, &filter, on_answer, &filter), 0);
}

static void kill_them(void)
{
    unsigned before = atomic_load(&answers);

    loop_runner_call(crowd.asker, begin, NULL);
    UNTIL(atomic_load(&answers) == before + 1);
}

GROUP(session_kill, crowd_enter, crowd_leave);

TEST(session_kill, all_selected_sessions_are_reset_and_no_others)
{
    crowd_add(200, 0);
    crowd_add(101, 1);
    ck_assert_ptr_null(session_filter_set(&filter, "server", "back/a"));
    kill_them();
    ck_assert_uint_eq(killed, 151);
    UNTIL(atomic_load(&crowd.ended) == 151);
    for (unsigned i = 0; i < 301; i += 2)
        sockets_hear_reset(crowd.clients[i]);
    sockets_say(crowd.clients[1], "y");
    sockets_hear(crowd.clients[1], "y");
    kill_them();
    ck_assert_uint_eq(killed, 0);
}

TEST(session_kill, without_sessions_there_is_an_answer)
{
    kill_them();
    ck_assert_uint_eq(killed, 0);
}

TEST(session_kill, a_worker_that_ends_meanwhile_does_not_hold_up_the_answer)
{
    struct tasks_block block;

    crowd_add(3, 0);
    tasks_block_begin(&block, loop_group_at(crowd.workers.loops, 0));
    loop_runner_call(crowd.asker, begin, NULL);
    loop_stop(loop_group_at(crowd.workers.loops, 0), 0, 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&answers) == 1);
}
