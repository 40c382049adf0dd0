/*
 * sessions/worker: taking sessions over, draining, and who closes a client's descriptor when the
 * loop is gone.
 */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "service/echo.h"
#include "sessions/session_idlest.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop *loop;
static struct worker *worker;
static const struct session_conf session_conf;
static struct service service;
static atomic_bool draining;
static atomic_uint ended;
static struct tasks_block block;
static unsigned before;
static void (*on_first_end)(void); /* its session is there yet */

static void on_ended(void *cookie, const struct service *of)
{
    ck_assert_ptr_eq(cookie, &service);
    ck_assert_ptr_eq(of, &service);
    if (atomic_fetch_add(&ended, 1) == 0 && on_first_end)
        on_first_end();
}

static void setup(void)
{
    struct worker_env env = {.draining = &draining, .ended = on_ended, .cookie = &service};
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 5 * NS_PER_MS};

    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    service = (struct service){.ops = &echo_ops, .conf = &session_conf, .listener = "test"};
    loop = loop_runner_create_with(budget, 65536);
    ck_assert_int_eq(worker_create(&worker, loop, &env), 0);
}

static void teardown(void)
{
    if (loop_state(loop) != LOOP_TERMINATED)
        loop_runner_stop(loop);
    worker_destroy(worker);
    loop_destroy(loop);
    ck_assert_uint_eq(process_descriptors(), before);
}

static struct session *new_session(int *client)
{
    struct session *s;
    int ours;

    sockets_tcp(&ours, client);
    ck_assert_int_eq(echo_ops.create(&s, &service), 0);
    s->client_fd = ours;
    sockets_loopback(&s->peer, 1);
    return s;
}

static int hand_over(void)
{
    int client;

    ck_assert_int_eq(worker_hand_over(loop, new_session(&client)), 0);
    return client;
}

GROUP(worker, setup, teardown);

TEST(worker, a_new_worker_has_no_thread)
{
    UNTIL(process_loops() == 0);
}

TEST(worker, a_session_that_is_handed_over_is_served_and_counted)
{
    int client = hand_over();

    ck_assert_uint_eq(loop_load(loop), 1);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    close(client);
    UNTIL(atomic_load(&ended) == 1);
    ck_assert_uint_eq(loop_load(loop), 0);
}

static void do_note_oldest(void *arg)
{
    *(int64_t *)arg = worker_net(worker)->oldest_at_ns;
}

static int64_t oldest_at_ns(void)
{
    int64_t at_ns;

    loop_runner_call(loop, do_note_oldest, &at_ns);
    return at_ns;
}

TEST(worker, loop_has_the_start_of_its_oldest_session)
{
    int64_t began_at_ns = clock_now_ns(), first_at_ns;
    int clients[2];

    clients[0] = hand_over();
    sockets_say(clients[0], "hello");
    sockets_hear(clients[0], "hello");
    first_at_ns = oldest_at_ns();
    ck_assert(first_at_ns >= began_at_ns && first_at_ns <= clock_now_ns());
    clients[1] = hand_over();
    sockets_say(clients[1], "hello");
    sockets_hear(clients[1], "hello");
    ck_assert_int_eq(oldest_at_ns(), first_at_ns);
    close(clients[0]);
    UNTIL(oldest_at_ns() != first_at_ns);
    ck_assert(oldest_at_ns() > first_at_ns && oldest_at_ns() < CLOCK_NEVER);
    close(clients[1]);
    UNTIL(oldest_at_ns() == CLOCK_NEVER);
}

TEST(worker, session_does_not_wait_behind_a_backlog_of_tasks)
{
    static struct tasks_slow slow[20000];
    int client;

    for (unsigned i = 0; i < ARRAY_LEN(slow); i++) {
        tasks_slow_init(&slow[i], NS_PER_MS);
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &slow[i].task), 0);
    }
    client = hand_over();
    sockets_say(client, "x");
    sockets_hear(client, "x");
    /* The backlog takes 20 s, a quantum 5 ms. */
    ck_assert_uint_eq(atomic_load(&slow[ARRAY_LEN(slow) - 1].run), 0);
    close(client);
    loop_stop(loop, 0, 0);
    loop_runner_join(loop);
}

TEST_EACH(worker, ended_worker_leaves_the_session_to_the_caller, 2)
{
    struct session *s;
    int client;

    if (_i)
        loop_runner_stats(loop);
    loop_runner_stop(loop);
    s = new_session(&client);
    ck_assert_int_eq(worker_hand_over(loop, s), -ESHUTDOWN);
    ck_assert_uint_eq(loop_load(loop), 0);
    ck_assert_uint_eq(atomic_load(&ended), 0);
    session_refuse(s);
    sockets_hear_reset(client);
    close(client);
}

TEST(worker, worker_that_cannot_start_leaves_the_session_to_the_caller)
{
    struct session *s;
    int client;

    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    s = new_session(&client);
    ck_assert_int_eq(worker_hand_over(loop, s), -EAGAIN);
    ck_assert_uint_eq(loop_load(loop), 0);
    ck_assert_int_eq(worker_hand_over(loop, s), 0); /* now it can */
    sockets_say(client, "x");
    sockets_hear(client, "x");
    close(client);
}

TEST(worker, worker_that_ends_before_it_adopts_a_session_resets_it)
{
    int clients[5];

    tasks_block_begin(&block, loop);
    for (int i = 0; i < 5; i++)
        clients[i] = hand_over();
    loop_stop(loop, 0, 0);
    tasks_block_end(&block);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&ended), 5);
    ck_assert_uint_eq(loop_load(loop), 0);
    for (int i = 0; i < 5; i++) {
        sockets_hear_reset(clients[i]);
        close(clients[i]);
    }
}

TEST(worker, session_handed_over_during_the_shutdown_of_the_worker_is_reset)
{
    int client;

    loop_runner_stats(loop);
    loop_stop(loop, 200 * NS_PER_MS, 5 * NS_PER_S);
    client = hand_over();
    sockets_hear_reset(client);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&ended), 1);
    close(client);
}

TEST(worker, stopping_the_loop_resets_every_session)
{
    int clients[20];

    for (int i = 0; i < 20; i++) {
        clients[i] = hand_over();
        sockets_say(clients[i], "x");
        sockets_hear(clients[i], "x");
    }
    sockets_stuff(clients[0], 0);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&ended), 20);
    for (int i = 1; i < 20; i++)
        sockets_hear_reset(clients[i]);
    for (int i = 0; i < 20; i++)
        close(clients[i]);
}

TEST(worker, draining_applies_to_open_sessions_and_to_later_ones)
{
    int early = hand_over(), late;

    sockets_say(early, "x");
    sockets_hear(early, "x");
    atomic_store(&draining, true);
    worker_drain(worker);
    late = hand_over();
    sockets_hear_end(early); /* after the quiet time of an echo */
    sockets_hear_end(late);
    close(early);
    close(late);
    UNTIL(atomic_load(&ended) == 2);
}

/* ---- in steps ---- */

#define MANY (2 * SESSION_SET_STEP)

static struct session *many[MANY];
static int many_clients[MANY];
static atomic_uint seen; /* sessions that the first step has reached */

static void hand_over_many(void)
{
    for (unsigned i = 0; i < MANY; i++) {
        many[i] = new_session(&many_clients[i]);
        ck_assert_int_eq(worker_hand_over(loop, many[i]), 0);
    }
    UNTIL(process_loops() > 0);
    loop_runner_stats(loop); /* after the hand-overs */
}

static void close_many(void)
{
    for (unsigned i = 0; i < MANY; i++)
        close(many_clients[i]);
}

static void run_look_at_draining(struct task *t)
{
    (void)t;
    for (unsigned i = 0; i < MANY; i++)
        atomic_fetch_add(&seen, many[i]->draining);
}

static const struct task_type look_at_draining = {.run = run_look_at_draining,
                                                  .drop = run_look_at_draining};

TEST(worker, draining_proceeds_in_bounded_steps)
{
    struct task look = {.type = &look_at_draining};

    hand_over_many();
    tasks_block_begin(&block, loop);
    worker_drain(worker);
    ck_assert_int_eq(loop_submit(loop, LOOP_CONTROL, &look), 0); /* before the second step */
    tasks_block_end(&block);
    UNTIL(atomic_load(&ended) == MANY); /* after the quiet time of an echo */
    ck_assert_uint_ge(atomic_load(&seen), 1);
    ck_assert_uint_le(atomic_load(&seen), SESSION_SET_STEP);
    close_many();
}

static void count_ending(void)
{
    for (unsigned i = 0; i < MANY; i++)
        atomic_fetch_add(&seen, many[i]->phase == SESSION_PHASE_ENDING);
}

TEST(worker, stopping_the_loop_resets_sessions_in_bounded_steps)
{
    hand_over_many();
    on_first_end = count_ending;
    loop_stop(loop, 0, UNTIL_LIMIT_NS);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&ended), MANY);
    ck_assert_uint_ge(atomic_load(&seen), 1);
    ck_assert_uint_le(atomic_load(&seen), SESSION_SET_STEP);
    close_many();
}

TEST(worker, loop_without_time_to_stop_resets_all_sessions_at_once)
{
    hand_over_many();
    loop_stop(loop, 0, 0);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&ended), MANY);
    close_many();
}

TEST(worker, draining_a_worker_without_a_thread_starts_none)
{
    atomic_store(&draining, true);
    worker_drain(worker);
    UNTIL(process_loops() == 0);
}

/* A client that has sent until nothing more was taken, and read nothing. */
static struct session *stall(int *client)
{
    struct session *s;

    ck_assert_int_eq(echo_ops.create(&s, &service), 0);
    sockets_unix(&s->client_fd, client); /* no window that opens a little, later */
    sockets_small(s->client_fd);
    sockets_small(*client);
    ck_assert_int_eq(worker_hand_over(loop, s), 0);
    (void)sockets_stuff(*client, 0);
    return s;
}

struct stalled {
    struct session *list[4];
    unsigned n, max;
};

static void find(struct stalled *stalled, int64_t (*at_ns)(const struct session *s))
{
    struct session_idlest search;

    session_idlest_init(&search);
    session_idlest_begin(&search, worker_sessions(worker), at_ns);
    while (!session_idlest_step(&search))
        continue;
    stalled->n = 0;
    for (struct session *s; stalled->n < stalled->max && (s = session_idlest_take(&search));)
        stalled->list[stalled->n++] = s;
    session_idlest_end(&search);
}

static void find_stalled(void *arg)
{
    find(arg, session_stalled_since_ns);
}

TEST(worker, stalled_sessions_are_listed_by_the_time_of_their_stall)
{
    struct stalled stalled;
    struct session *s[3];
    int clients[4];

    for (int i = 0; i < 3; i++)
        s[i] = stall(&clients[i]);
    clients[3] = hand_over();
    sockets_say(clients[3], "x");
    sockets_hear(clients[3], "x"); /* holds nothing */
    for (stalled.max = 1; stalled.max <= 4; stalled.max++) {
        unsigned wanted = stalled.max < 3 ? stalled.max : 3;

        loop_runner_call(loop, find_stalled, &stalled);
        ck_assert_uint_eq(stalled.n, wanted);
        for (unsigned i = 0; i < wanted; i++)
            ck_assert_ptr_eq(stalled.list[i], s[i]);
    }
    for (int i = 0; i < 4; i++)
        close(clients[i]);
}

static void find_idlest(void *arg)
{
    find(arg, session_active_at_ns);
}

TEST(worker, idlest_sessions_are_listed_by_their_last_activity)
{
    static const int turns[] = {2, 0, 1}; /* who speaks when */
    struct stalled idle = {.max = 4};
    struct session *s[3];
    int clients[3];

    for (int i = 0; i < 3; i++) {
        s[i] = new_session(&clients[i]);
        ck_assert_int_eq(worker_hand_over(loop, s[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        sockets_say(clients[turns[i]], "x");
        sockets_hear(clients[turns[i]], "x");
    }
    for (idle.max = 1; idle.max <= 4; idle.max++) {
        unsigned wanted = idle.max < 3 ? idle.max : 3;

        loop_runner_call(loop, find_idlest, &idle);
        ck_assert_uint_eq(idle.n, wanted);
        for (unsigned i = 0; i < wanted; i++)
            ck_assert_ptr_eq(idle.list[i], s[turns[i]]);
    }
    for (int i = 0; i < 3; i++)
        close(clients[i]);
}

TEST(worker, destroying_null_is_allowed)
{
    worker_destroy(NULL);
}
