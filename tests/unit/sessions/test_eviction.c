/*
 * sessions/eviction: sessions at a server that is down are ended on each worker, however much that
 * has to do.
 */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "balance/upstream_server.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/loop_group.h"
#include "service/echo.h"
#include "sessions/eviction.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define PENDING 16
#define MANY    (3 * SESSION_SET_STEP)

static struct loop_group *group;
static struct loop *control;
static struct worker *worker;
static struct service_ops ops;
static const struct session_conf session_conf;
static struct service service;
static atomic_bool draining;
static atomic_uint ended;
static struct session *sessions[MANY];
static unsigned n_sessions;
static unsigned evicted_first; /* until the first one is freed */
static int64_t evicted_at_ns[MANY];
static unsigned n_evicted;
static struct endpoint_group endpoints;
static _Atomic uint32_t load;
/* With space for a name. */
#define SERVER_BYTES (sizeof(struct upstream_server) + alignof(struct upstream_server))

static struct upstream_server *server;

static void on_ended(void *cookie, const struct service *of)
{
    (void)cookie;
    (void)of;
    if (atomic_fetch_add(&ended, 1) == 0)
        for (unsigned i = 0; i < n_sessions; i++)
            evicted_first += sessions[i]->phase == SESSION_PHASE_ENDING;
}

static bool of_backup;

static bool evict(struct session *s, const struct upstream_server *at, int64_t before_ns,
                  enum session_reason reason)
{
    ck_assert_int_eq(reason, of_backup ? SESSION_DRAIN : SESSION_SERVER_DOWN);
    ck_assert_ptr_eq(at, server);
    ck_assert_int_gt(before_ns, 0);
    evicted_at_ns[n_evicted++] = clock_now_ns();
    if (s->phase == SESSION_PHASE_CONNECTING)
        s->phase = SESSION_PHASE_OPEN; /* at another server */
    else
        session_abort(s, reason);
    return true;
}

static void setup(void)
{
    struct loop_group_conf conf = {.name = "work",
                                   .pool = 2,
                                   .n_loops = 1,
                                   .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS},
                                            .max_pending_tasks = PENDING}};
    struct worker_env env = {.draining = &draining, .ended = on_ended};

    ops = echo_ops;
    ops.evict = evict;
    service = (struct service){.ops = &ops, .conf = &session_conf, .listener = "test"};
    server = aligned_alloc(alignof(struct upstream_server), SERVER_BYTES);
    ck_assert_ptr_nonnull(server);
    memset(server, 0, SERVER_BYTES);
    server->endpoint.load = &load;
    server->endpoint.group = &endpoints;
    strcpy(server->name, "a");
    ref_init(&server->references);
    atomic_store(&load, ENDPOINT_DOWN);
    ck_assert_int_eq(loop_group_create(&group, &conf), 0);
    ck_assert_int_eq(worker_create(&worker, loop_group_at(group, 0), &env), 0);
    control = loop_runner_create();
}

static void teardown(void)
{
    loop_runner_stop(control);
    loop_group_stop(group, 0, NS_PER_S);
    loop_runner_join_group(group);
    ck_assert_uint_eq(ref_count(&server->references), 1);
    free(server);
    worker_destroy(worker);
    loop_runner_destroy(control);
    loop_group_destroy(group);
}

/* A client of a session that is served by the worker. */
static int client(void)
{
    struct session *s;
    int ours, theirs;

    sockets_tcp(&ours, &theirs);
    ck_assert_int_eq(ops.create(&s, &service), 0);
    s->client_fd = ours;
    sessions[n_sessions++] = s;
    sockets_loopback(&s->peer, 1);
    ck_assert_int_eq(worker_hand_over(loop_group_at(group, 0), s), 0);
    sockets_say(theirs, "x");
    sockets_hear(theirs, "x");
    return theirs;
}

static void begin(void *arg)
{
    struct eviction_conf conf = {.loops = group,
                                 .workers = &worker,
                                 .upstream = "back",
                                 .server = server,
                                 .of_backup = of_backup,
                                 .rate = *(unsigned *)arg};

    ck_assert_int_eq(eviction_begin(&conf), 0);
}

GROUP(eviction, setup, teardown);

TEST_EACH(eviction, all_sessions_of_the_server_are_reset_and_the_server_is_released, 2)
{
    unsigned rate = _i ? 100 : 0;
    int clients[3];

    log_lines_capture(LOG_LEVEL_NOTICE);
    for (unsigned i = 0; i < 3; i++)
        clients[i] = client();
    loop_runner_call(control, begin, &rate);
    for (unsigned i = 0; i < 3; i++) {
        sockets_hear_reset(clients[i]);
        close(clients[i]);
    }
    UNTIL(atomic_load(&ended) == 3 && ref_count(&server->references) == 1);
    EXPECT_LOG_LINES("upstream back: server a: down: connections reset: 3", 1);
}

static void connect_again(void *arg)
{
    ((struct session *)arg)->phase = SESSION_PHASE_CONNECTING;
}

TEST(eviction, session_that_connects_goes_to_another_server_and_is_no_reset)
{
    unsigned rate = 0;
    int connects = client(), there = client();

    log_lines_capture(LOG_LEVEL_NOTICE);
    loop_runner_call(loop_group_at(group, 0), connect_again, sessions[0]);
    loop_runner_call(control, begin, &rate);
    sockets_hear_reset(there);
    UNTIL(ref_count(&server->references) == 1);
    EXPECT_LOG_LINES("upstream back: server a: down: connections reset: 1", 1);
    ck_assert_uint_eq(n_evicted, 2);
    close(connects);
    close(there);
}

TEST(eviction, sessions_of_a_server_removed_meanwhile_are_reset)
{
    unsigned rate = 0;
    int there = client();

    atomic_store(&load, ENDPOINT_ABSENT); /* a removed server counts as up */
    loop_runner_call(control, begin, &rate);
    sockets_hear_reset(there);
    close(there);
    UNTIL(ref_count(&server->references) == 1);
}

TEST_EACH(eviction, sessions_of_a_backup_are_reset_unless_it_is_in_use_again, 2)
{
    unsigned rate = 0;
    int there = client();

    of_backup = true;
    atomic_store(&load, 0); /* it is up */
    if (_i == 1)
        endpoint_put_in_use(&server->endpoint, true);
    loop_runner_call(control, begin, &rate);
    UNTIL(ref_count(&server->references) == 1);
    if (_i == 0)
        sockets_hear_reset(there);
    ck_assert_uint_eq(n_evicted, 1 - (unsigned)_i);
    close(there);
}

TEST(eviction, many_sessions_are_reset_in_bounded_steps)
{
    static int clients[MANY];
    unsigned rate = 0;

    for (unsigned i = 0; i < MANY; i++)
        clients[i] = client();
    loop_runner_call(control, begin, &rate);
    UNTIL(atomic_load(&ended) == MANY && ref_count(&server->references) == 1);
    ck_assert_uint_ge(evicted_first, 1);
    ck_assert_uint_le(evicted_first, 2 * SESSION_SET_STEP); /* a control task, a tail task */
    for (unsigned i = 0; i < MANY; i++)
        close(clients[i]);
}

/* So many sessions per tick are more than a step ends: the steps of a tick share them. */
#define MORE_THAN_STEP (SESSION_SET_STEP + SESSION_SET_STEP / 2)

TEST(eviction, rate_applies_to_all_steps_of_a_tick_together)
{
    static int clients[MANY];
    unsigned rate = MORE_THAN_STEP * (NS_PER_S / EVICTION_TICK_NS);

    for (unsigned i = 0; i < MANY; i++)
        clients[i] = client();
    loop_runner_call(control, begin, &rate);
    UNTIL(atomic_load(&ended) == MANY && ref_count(&server->references) == 1);
    ck_assert_int_ge(evicted_at_ns[MORE_THAN_STEP] - evicted_at_ns[MORE_THAN_STEP - 1],
                     EVICTION_TICK_NS);
    for (unsigned i = 0; i < MANY; i++)
        close(clients[i]);
}

TEST(eviction, sessions_of_a_worker_with_a_full_queue_are_reset)
{
    static struct tasks_counted full[PENDING];
    struct loop *loop = loop_group_at(group, 0);
    struct tasks_block block;
    unsigned rate = 0;
    int there = client();

    tasks_block_begin(&block, loop);
    for (unsigned i = 0; i < PENDING; i++) {
        tasks_counted_init(&full[i]);
        (void)!loop_submit_lazy(loop, LOOP_TASKS,
                                &full[i].task); /* the last of them is refused or not */
    }
    loop_runner_call(control, begin, &rate);
    tasks_block_end(&block);
    sockets_hear_reset(there);
    close(there);
    UNTIL(ref_count(&server->references) == 1);
}

TEST(eviction, worker_without_a_thread_is_not_started)
{
    unsigned rate = 0;

    loop_runner_call(control, begin, &rate);
    ck_assert_uint_eq(ref_count(&server->references), 1);
    ck_assert_int_eq(loop_state(loop_group_at(group, 0)), LOOP_NOT_STARTED);
}
