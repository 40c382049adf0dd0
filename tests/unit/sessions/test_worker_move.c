/* sessions/worker: sessions that move from one worker to another, and those that may not. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/move_gate.h"
#include "service/echo.h"
#include "service/session.h"
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

#define WORKERS 3 /* the last one has no thread */

static struct loop *loops[WORKERS];
static struct worker *workers[WORKERS];
static struct move_gate gate;
static struct session_conf conf;
static struct service service;
static atomic_bool draining;
static atomic_uint ended;
static unsigned before;

static void on_ended(void *cookie, const struct service *of)
{
    (void)cookie;
    ck_assert_ptr_eq(of, &service);
    atomic_fetch_add(&ended, 1);
}

static void setup(void)
{
    struct worker_env env = {.draining = &draining, .moves = &gate, .ended = on_ended};
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 5 * NS_PER_MS};

    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    conf = (struct session_conf){.linger = {.timeout_ns = NS_PER_S, .max_ns = NS_PER_S}};
    service = (struct service){.ops = &echo_ops, .conf = &conf, .listener = "test"};
    for (unsigned i = 0; i < WORKERS; i++) {
        loops[i] = loop_runner_create_with(budget, 65536);
        ck_assert_int_eq(worker_create(&workers[i], loops[i], &env), 0);
    }
    loop_runner_turn(loops[1]);
}

static void teardown(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        if (loop_state(loops[i]) != LOOP_TERMINATED)
            loop_runner_stop(loops[i]);
    for (unsigned i = 0; i < WORKERS; i++) {
        worker_destroy(workers[i]);
        loop_destroy(loops[i]);
    }
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(move, setup, teardown);

/* A client of worker 0; ${low}: no descriptor of ours is below it. */
static int hand_over_above(int low)
{
    struct session *s;
    int ours, client;

    sockets_tcp(&ours, &client);
    ck_assert_int_eq(echo_ops.create(&s, &service), 0);
    s->client_fd = fcntl(ours, F_DUPFD_CLOEXEC, low);
    ck_assert_int_ge(s->client_fd, low);
    close(ours);
    sockets_loopback(&s->peer, 1);
    ck_assert_int_eq(worker_hand_over(loops[0], s), 0);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    return client;
}

static int hand_over(void)
{
    return hand_over_above(0);
}

struct move {
    unsigned from, to;
    int rc;
};

static void do_move(void *arg)
{
    struct move *m = arg;

    m->rc = worker_move(workers[m->from], session_set_oldest(worker_sessions(workers[m->from])),
                        loops[m->to]);
}

static int move(unsigned from, unsigned to)
{
    struct move m = {.from = from, .to = to};

    loop_runner_call(loops[from], do_move, &m);
    return m.rc;
}

TEST(move, session_that_has_moved_is_served_and_ends_on_the_new_loop)
{
    int client = hand_over();

    ck_assert_int_eq(move(0, 1), 0);
    ck_assert_uint_eq(loop_load(loops[0]), 0);
    ck_assert_uint_eq(loop_load(loops[1]), 1);
    sockets_say(client, "there");
    sockets_hear(client, "there");
    loop_runner_stop(loops[0]); /* which has nothing of it any more */
    sockets_say(client, "on");
    sockets_hear(client, "on");
    sockets_end(client);
    sockets_hear_end(client);
    close(client);
    UNTIL(atomic_load(&ended) == 1);
    ck_assert_uint_eq(loop_load(loops[1]), 0);
}

TEST(move, bytes_that_come_while_it_moves_are_served)
{
    struct tasks_block block;
    int client = hand_over();

    tasks_block_begin(&block, loops[1]);
    ck_assert_int_eq(move(0, 1), 0);
    sockets_say(client, "on the way");
    PAUSE_MS(20);
    tasks_block_end(&block);
    sockets_hear(client, "on the way");
    close(client);
}

TEST(move, pending_bytes_move_with_it)
{
    int client = hand_over();
    size_t sent;

    sent = sockets_stuff(client, 0);
    ck_assert_int_eq(move(0, 1), 0);
    ck_assert_int_eq(move(1, 0), 0);
    sockets_hear_pattern(client, 0, sent);
    sockets_say(client, "rest");
    sockets_hear(client, "rest");
    close(client);
}

TEST(move, half_closed_session_delivers_the_rest_on_the_new_loop)
{
    int client = hand_over();
    size_t sent;

    sent = sockets_stuff(client, 0);
    sockets_end(client);
    ck_assert_int_eq(move(0, 1), 0);
    sockets_hear_pattern(client, 0, sent);
    sockets_hear_end(client);
    UNTIL(atomic_load(&ended) == 1);
    close(client);
}

TEST(move, reset_of_a_client_is_seen_on_the_new_loop)
{
    int client = hand_over();

    ck_assert_int_eq(move(0, 1), 0);
    sockets_reset(client);
    UNTIL(atomic_load(&ended) == 1);
}

TEST(move, timeout_ends_it_on_the_new_loop)
{
    int client;

    conf.idle_timeout_ns = 300 * NS_PER_MS;
    client = hand_over();
    ck_assert_int_eq(move(0, 1), 0);
    loop_runner_stop(loops[0]);
    sockets_hear_end(client);
    close(client);
    UNTIL(atomic_load(&ended) == 1);
}

TEST(move, session_comes_and_goes_many_times)
{
    int client = hand_over();

    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(move(i % 2, 1 - i % 2), 0);
    sockets_say(client, "x");
    sockets_hear(client, "x");
    close(client);
    UNTIL(atomic_load(&ended) == 1);
}

TEST(move, refused_moves_leave_it_where_it_is)
{
    int client = hand_over();

    ck_assert_int_eq(move(0, 0), -EALREADY);
    move_gate_hold(&gate);
    ck_assert_int_eq(move(0, 1), -EAGAIN);
    move_gate_release(&gate);
    fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    ck_assert_int_eq(move(0, 1), -ENOMEM);
    loop_runner_stop(loops[1]);
    ck_assert_int_eq(move(0, 1), -ESHUTDOWN);
    ck_assert_uint_eq(loop_load(loops[0]), 1);
    ck_assert_uint_eq(loop_load(loops[1]), 0);
    sockets_say(client, "here");
    sockets_hear(client, "here");
    close(client);
    UNTIL(atomic_load(&ended) == 1);
}

TEST(move, worker_without_a_thread_starts_one)
{
    int client = hand_over();

    ck_assert_int_eq(move(0, 2), 0);
    sockets_say(client, "there");
    sockets_hear(client, "there");
    close(client);
    UNTIL(atomic_load(&ended) == 1);
}

TEST(move, loop_reserves_memory_before_it_gets_a_session)
{
    int client = hand_over_above(200);

    ck_assert_int_eq(move(0, 1), -EAGAIN);
    loop_runner_turn(loops[1]);
    ck_assert_int_eq(move(0, 1), 0);
    sockets_say(client, "there");
    sockets_hear(client, "there");
    close(client);
}

static void do_close(void *arg)
{
    (void)arg;
    session_close(session_set_oldest(worker_sessions(workers[0])), SESSION_KILLED);
}

TEST(move, session_that_ends_does_not_move)
{
    int client = hand_over();

    loop_runner_call(loops[0], do_close, NULL);
    ck_assert_int_eq(move(0, 1), -EBUSY);
    close(client);
    UNTIL(atomic_load(&ended) == 1);
}

TEST(move, draining_reaches_a_session_that_was_on_the_way)
{
    struct tasks_block block;
    int client = hand_over();

    tasks_block_begin(&block, loops[1]);
    ck_assert_int_eq(move(0, 1), 0);
    atomic_store(&draining, true);
    tasks_block_end(&block);
    sockets_hear_end(client); /* a quiet echo ends */
    close(client);
    UNTIL(atomic_load(&ended) == 1);
}

TEST(move, worker_that_ends_resets_a_session_that_was_on_the_way)
{
    struct tasks_block block;
    int client = hand_over();

    tasks_block_begin(&block, loops[1]);
    ck_assert_int_eq(move(0, 1), 0);
    loop_stop(loops[1], 0, 0);
    tasks_block_end(&block);
    loop_runner_join(loops[1]);
    sockets_hear_reset(client);
    ck_assert_uint_eq(atomic_load(&ended), 1);
    ck_assert_uint_eq(loop_load(loops[1]), 0);
    close(client);
}
