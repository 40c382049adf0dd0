/*
 * sessions/carry_over: open sessions follow a change of their listener, and nothing of what was
 * replaced is freed too early or stays.
 */
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "service/session.h"
#include "sessions/carry_over.h"
#include "sessions/session_set.h"
#include "stats/access_log.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/served.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define SESSIONS (2 * SESSION_SET_STEP + 90)

static struct tasks_block block;
static int clients[SESSIONS];

static void connect_clients(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        clients[i] = served_client(0);
}

static void close_clients(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        close(clients[i]);
}

static void exchange(int fd)
{
    sockets_say(fd, "more");
    sockets_hear(fd, "more");
}

static bool used(unsigned log)
{
    return access_log_used(served.logs[log]);
}

static void start_with_log(void)
{
    served_log(0);
    served_start(1);
}

static void change_to_log(unsigned log)
{
    served_log(log);
    served_change(1);
}

GROUP(carry_over, served_enter, served_leave);

TEST(carry_over, a_session_gets_the_new_settings)
{
    int fd;

    served_start(1);
    fd = served_client(0);
    served.listeners[0].session.idle_timeout_ns = 50 * NS_PER_MS;
    served_change(1);
    sockets_hear_end(fd);
    close(fd);
}

TEST(carry_over, replaced_settings_are_released_while_their_sessions_stay_open)
{
    start_with_log();
    connect_clients(3);
    change_to_log(1);
    UNTIL(!used(0));
    ck_assert(used(1));
    for (unsigned i = 0; i < 3; i++)
        exchange(clients[i]);
    close_clients(3);
}

TEST(carry_over, replaced_settings_without_sessions_are_released)
{
    start_with_log();
    change_to_log(1);
    UNTIL(!used(0));
}

TEST(carry_over, sessions_beyond_one_task_are_all_carried_over)
{
    start_with_log();
    connect_clients(SESSIONS);
    change_to_log(1);
    UNTIL(!used(0));
    close_clients(SESSIONS);
    UNTIL(atomic_load(&served.ended) == SESSIONS);
}

TEST(carry_over, settings_of_each_of_many_changes_are_released)
{
    start_with_log();
    connect_clients(5);
    for (unsigned i = 1; i <= 50; i++)
        change_to_log(i % 2);
    UNTIL(!used(1));
    ck_assert(used(0));
    close_clients(5);
}

/* Sessions of both workers, before and after the place where a step has stopped. */
TEST(carry_over, sessions_that_end_during_the_run_do_not_stop_it)
{
    start_with_log();
    connect_clients(SESSIONS);
    change_to_log(1);
    for (unsigned i = 0; i < SESSIONS; i += 3)
        close(clients[i]);
    UNTIL(!used(0));
    for (unsigned i = 0; i < SESSIONS; i++)
        if (i % 3 != 0)
            close(clients[i]);
    UNTIL(atomic_load(&served.ended) == SESSIONS);
}

/* ---- who still uses what was replaced ---- */

TEST(carry_over, settings_are_not_released_before_each_boss_has_run_a_task)
{
    start_with_log();
    connect_clients(2);
    tasks_block_begin(&block, loop_group_at(served.boss, 0));
    change_to_log(1);
    PAUSE_MS(50);
    ck_assert(used(0));
    tasks_block_end(&block);
    UNTIL(!used(0));
    close_clients(2);
}

TEST(carry_over, session_queued_for_its_worker_is_carried_over)
{
    start_with_log();
    connect_clients(2); /* one at each worker */
    tasks_block_begin(&block, loop_group_at(served.workers, 0));
    for (unsigned i = 2; i < 6; i++)
        clients[i] = sockets_connect(&served.addresses[0]);
    UNTIL(atomic_load(&served.accepted) == 6);
    change_to_log(1);
    PAUSE_MS(20);
    ck_assert(used(0));
    tasks_block_end(&block);
    UNTIL(!used(0));
    for (unsigned i = 0; i < 6; i++)
        exchange(clients[i]);
    close_clients(6);
}

TEST(carry_over, sessions_of_a_removed_listener_keep_their_settings)
{
    start_with_log();
    connect_clients(2);
    served_change(0);
    UNTIL(atomic_load(&served.stopped) == 1);
    for (unsigned i = 0; i < 2; i++)
        exchange(clients[i]);
    ck_assert(used(0));
    close_clients(2);
    UNTIL(!used(0));
}

TEST(carry_over, replaced_settings_are_released_when_the_loops_stop)
{
    start_with_log();
    connect_clients(2);
    tasks_block_begin(&block, loop_group_at(served.boss, 0));
    change_to_log(1);
    loop_group_stop(served.boss, 0, 5 * NS_PER_S);
    loop_group_stop(served.workers, 0, 5 * NS_PER_S);
    tasks_block_end(&block);
    close_clients(2);
}

/* ---- all at once ---- */

static atomic_bool over;

static void *come_and_go(void *arg)
{
    unsigned at = *(unsigned *)arg;

    while (!atomic_load(&over))
        close(served_client(at));
    return NULL;
}

TEST(carry_over, changes_under_load_lose_no_client)
{
    unsigned at[4] = {0, 1, 0, 1};
    pthread_t threads[4];

    served_log(0);
    served.listeners[0].quota.max_connections = 3;
    served_start(2);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, &at[i]), 0);
    for (unsigned i = 1; i <= 60; i++) {
        struct address *mine = served.listeners[0].addresses;

        served_log(i % 2);
        served.listeners[0].addresses = served.listeners[1].addresses;
        served.listeners[1].addresses = mine;
        served.listeners[0].reuseport = 1 + i % 3;
        served.listeners[0].quota.max_connections = i % 5;
        served_change(2 + i % 2);
        figures_log_listeners(served.all);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    UNTIL(!used(1));
}
