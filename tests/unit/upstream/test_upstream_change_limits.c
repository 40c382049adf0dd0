/* upstream/upstream_change: other limits, and sessions that wait. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "engine/loop_group.h"
#include "support/changing.h"
#include "support/fault.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

static struct loop_group *workers;

static void on_came(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    ck_assert_str_eq(server->name, "c");
    changing.n_came++;
}

static void on_went(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    ck_assert_str_eq(server->name, "b");
    changing.n_went++;
}

GROUP(change, changing_setup, changing_teardown);

TEST(change, watch_is_notified_once_of_each_server)
{
    changing_open_group();
    changing_members()->watch =
        (struct membership_watch){.came = on_came, .went = on_went, .changed = changing_on_changed};
    changing.next_servers[0].check_port = 99;
    changing.next_servers[1] = changing.servers[2];
    changing_change_all();
    changing_change_all();
    ck_assert_uint_eq(changing.n_came, 1);
    ck_assert_uint_eq(changing.n_went, 1);
    ck_assert_uint_eq(changing.n_changed, 1);
}

/* ---- the upstream ---- */

TEST(change, changed_limits_of_the_upstream_apply)
{
    changing_open_group();
    changing.next.queue_length = 7;
    changing.next.queue_timeout_ns = 77;
    changing.next.retry_budget = 50;
    changing.next.ejection.failures = 0;
    changing.next_servers[0].max_connections = 5;
    ck_assert(!atomic_load(&changing.upstream->bounded));
    changing_change_all();
    ck_assert_uint_eq(atomic_load(&changing.upstream->waiting.max), 7);
    ck_assert_int_eq(atomic_load(&changing.upstream->waiting.timeout_ns), 77);
    ck_assert_uint_eq(atomic_load(&changing.upstream->retry_budget.percent), 50);
    ck_assert(atomic_load(&changing.upstream->bounded));
    upstream_leave(changing.upstream, changing_pick(0), UPSTREAM_FAILED);
    ck_assert(!ejection_some_out(&changing.upstream->ejection));
}

TEST(change, changed_limit_counts_open_sessions)
{
    struct upstream_server *a;

    changing.conf.n_servers = 1;
    changing_open_group();
    a = changing_pick(0);
    (void)changing_pick(0);
    changing.next_servers[0].max_connections = 2;
    changing_change_all();
    (void)changing_pick(-EBUSY);
    upstream_leave(changing.upstream, a, UPSTREAM_UNKNOWN);
    (void)changing_pick(0);
    changing.next_servers[0].max_connections = 0;
    changing_change_all();
    (void)changing_pick(0);
}

struct waiting {
    struct wait_ticket *ticket;
    struct balancer_pick_state pick;
    struct endpoint *got;
    atomic_uint done;
};

static void on_done(void *cookie, struct endpoint *e, int error)
{
    struct waiting *w = cookie;

    (void)error;
    w->got = e;
    atomic_fetch_add(&w->done, 1);
}

static void join(void *arg)
{
    struct waiting *w = arg;

    balancer_begin(&w->pick, 1);
    ck_assert_int_eq(wait_queue_join(&changing.upstream->waiting, &w->ticket, &w->pick, on_done, w),
                     0);
}

/* 0: another server; 1: a higher limit; 2: no limit. */
TEST_EACH(change, queued_session_gets_a_server_that_a_change_adds_or_raises, 3)
{
    struct loop *loop = loop_runner_create();
    struct waiting waiting = {.done = 0};

    changing.conf.n_servers = 1;
    changing.conf.queue_length = 10;
    changing.conf.queue_timeout_ns = UNTIL_LIMIT_NS;
    changing.servers[0].max_connections = 1;
    changing_open_group();
    (void)changing_pick(0);
    loop_runner_call(loop, join, &waiting);
    ck_assert_uint_eq(wait_queue_length(&changing.upstream->waiting), 1);
    changing.next.n_servers = _i == 0 ? 2 : 1;
    changing.next_servers[0].max_connections = 1 + (unsigned)_i;
    if (_i == 2)
        changing.next_servers[0].max_connections = 0;
    changing_change_all();
    UNTIL(atomic_load(&waiting.done) == 1);
    ck_assert_ptr_eq(waiting.got, &changing_server_at(_i == 0)->endpoint);
    loop_runner_destroy(loop);
}

/* A worker that sleeps: a grace period waits for it, a session does not. */
TEST(change, queued_session_does_not_wait_for_the_grace_period)
{
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = 2,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct waiting waiting = {.done = 0};
    struct server_set *set;

    changing.conf.n_servers = 1;
    changing.conf.queue_length = 10;
    changing.conf.queue_timeout_ns = UNTIL_LIMIT_NS;
    changing.servers[0].max_connections = 1;
    ck_assert_int_eq(loop_group_create(&workers, &group), 0);
    for (unsigned i = 0; i < 2; i++)
        loop_runner_turn(loop_group_at(workers, i));
    ck_assert_int_eq(upstream_create(&changing.upstream, &changing.conf,
                                     &(struct upstream_env){.workers = workers}),
                     0);
    changing.next = changing.conf;
    (void)changing_pick(0);
    loop_runner_call(loop_group_at(workers, 0), join, &waiting);
    set = membership_now(changing_members());
    changing.next.n_servers = 2;
    changing_change_all();
    UNTIL(atomic_load(&waiting.done) == 1);
    ck_assert(!atomic_load(&set->unseen));
    loop_group_stop(workers, 0, NS_PER_S);
    loop_runner_join_group(workers);
    ck_assert(atomic_load(&set->unseen));
    loop_group_destroy(workers);
}

TEST(change, memory_of_both_configurations_is_freed)
{
    struct arena *memory[2];

    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(arena_create(&memory[i]), 0);
    changing.conf.memory = memory[0];
    changing.conf.name = arena_text(memory[0], "back", 4);
    changing_open_group();
    arena_release(memory[0]);
    changing.next.memory = memory[1];
    changing_change_all();
    arena_release(memory[1]);
    ck_assert_ptr_eq(atomic_load(&changing.upstream->conf)->connect.memory, memory[1]);
    ck_assert_str_eq(changing.upstream->name, "back");
}

TEST(change, cancelled_change_changes_nothing)
{
    const struct server_set *set;

    changing_open_group();
    set = membership_now(changing_members());
    changing.next.n_servers = 4;
    changing.next_servers[0].weight = 9;
    changing.next_servers[1].addresses = &changing.addresses[SERVERS];
    changing_prepare();
    upstream_change_cancel(changing.change);
    upstream_change_cancel(NULL);
    ck_assert_ptr_eq(membership_now(changing_members()), set);
    ck_assert_ptr_eq(atomic_load(&changing.upstream->conf), &changing.conf);
    ck_assert_uint_eq(atomic_load(&changing_server_at(0)->endpoint.weight), 1);
    ck_assert_uint_eq(changing_remembered(), 2);
    changing_change_all();
    ck_assert_str_eq(changing_names(), "a b c d");
}

static int attempt(void *cookie)
{
    int rc;

    (void)cookie;
    rc = upstream_change_prepare(&changing.change, changing.upstream, &changing.next);
    if (rc == 0 && changing_give_places("d", "123") < 0)
        rc = -ENOMEM;
    else if (rc < 0)
        return rc;
    upstream_change_cancel(changing.change);
    return rc;
}

TEST(change, failed_allocation_changes_nothing)
{
    const struct server_set *set;
    unsigned allocations;

    changing_open_group();
    set = membership_now(changing_members());
    changing.next.n_servers = 4;
    changing.next_servers[1].addresses = &changing.addresses[SERVERS];
    changing.next_servers[3].names = UPSTREAM_NAME_EACH;
    changing.next_servers[3].n_addresses = 0;
    allocations = fault_each_allocation(attempt, NULL);
    ck_assert_uint_gt(allocations, 20);
    ck_assert_ptr_eq(membership_now(changing_members()), set);
    ck_assert_uint_eq(changing_remembered(), 2);
    changing_change_all();
    ck_assert_str_eq(changing_names(), "a b c");
}

/* ---- while it is used ---- */

#define WORKERS 3
#define CHANGES 200
#define AT_ONCE 4

static atomic_bool over;

/* A session of a worker: it picks, perhaps waits, stays for some turns and leaves. */
struct client {
    struct balancer_pick_state pick;
    struct wait_ticket *ticket;
    struct upstream_server *at;
};

static struct client clients[WORKERS][AT_ONCE];

static void client_served(void *cookie, struct endpoint *e, int error)
{
    struct client *c = cookie;

    ck_assert(e || error < 0);
    c->ticket = NULL;
    c->at = e ? upstream_server_of(e) : NULL;
}

static void client_step(struct client *c)
{
    if (c->ticket)
        return;
    if (c->at) {
        ck_assert_uint_eq(strlen(c->at->conf->id), 1);
        upstream_leave(changing.upstream, c->at, UPSTREAM_UNKNOWN);
        c->at = NULL;
        return;
    }
    balancer_begin(&c->pick, 0);
    if (upstream_pick(changing.upstream, &c->pick, &c->at) == 0) {
        struct endpoint_addresses *at = endpoint_hold_addresses(&c->at->endpoint);

        ck_assert_ptr_nonnull(at);
        endpoint_release_addresses(at);
    } else {
        c->at = NULL;
        if (wait_queue_join(&changing.upstream->waiting, &c->ticket, &c->pick, client_served, c) <
            0)
            c->ticket = NULL;
    }
    ck_assert_str_eq(atomic_load(&changing.upstream->conf)->name, "back");
}

static void step_all(void *arg)
{
    struct client *list = arg;

    for (unsigned i = 0; i < AT_ONCE; i++)
        client_step(&list[i]);
}

static void end_all(void *arg)
{
    struct client *list = arg;

    for (unsigned i = 0; i < AT_ONCE; i++)
        if (list[i].ticket)
            wait_queue_leave(list[i].ticket);
        else if (list[i].at)
            upstream_leave(changing.upstream, list[i].at, UPSTREAM_UNKNOWN);
}

static void *work(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&over))
        loop_runner_call(loop_group_at(workers, i), step_all, clients[i]);
    loop_runner_call(loop_group_at(workers, i), end_all, clients[i]);
    return NULL;
}

static void *read_statistics(void *arg)
{
    (void)arg;
    while (!atomic_load(&over))
        figures_log_upstream(changing.upstream);
    return NULL;
}

/* Each change is another configuration, in its own memory. */
static void change_some(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct upstream_conf other = changing.conf;
    struct upstream_server_conf *list;

    ck_assert_int_eq(arena_create(&other.memory), 0);
    list = arena_alloc(other.memory, SERVERS, sizeof(*list));
    memcpy(list, changing.servers, SERVERS * sizeof(*list));
    other.name = arena_text(other.memory, "back", 4);
    other.servers = list;
    other.n_servers = 1 + n % SERVERS;
    other.queue_length = 1 + n % 7;
    other.balance = (enum balancer_kind)(n % BALANCER_KINDS);
    list[0].addresses = &changing.addresses[n % 3 == 0 ? SERVERS : 0];
    list[0].max_connections = n % 3;
    list[1].weight = 1 + n % 5;
    list[2].disabled = n % 4 == 3;
    changing.next = other;
    changing_prepare();
    if (n % 5 == 4)
        upstream_change_cancel(changing.change);
    else
        upstream_change_commit(changing.change);
    arena_release(other.memory);
    (void)upstream_sweep_unused(changing.upstream);
}

TEST(change, workers_pick_and_wait_during_changes)
{
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = WORKERS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct loop *control = loop_runner_create();
    pthread_t threads[WORKERS + 1];

    log_lines_capture(LOG_LEVEL_ERROR); /* there are more lines than are kept */
    changing.conf.queue_length = 5;
    changing.conf.queue_timeout_ns = UNTIL_LIMIT_NS;
    changing.servers[0].max_connections = 1;
    ck_assert_int_eq(loop_group_create(&workers, &group), 0);
    ck_assert_int_eq(upstream_create(&changing.upstream, &changing.conf,
                                     &(struct upstream_env){.workers = workers}),
                     0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    pthread_create(&threads[WORKERS], NULL, read_statistics, NULL);
    for (unsigned i = 0; i < CHANGES; i++)
        loop_runner_call(control, change_some, &i);
    atomic_store(&over, true);
    for (unsigned i = 0; i <= WORKERS; i++)
        pthread_join(threads[i], NULL);
    loop_group_stop(workers, 0, NS_PER_S);
    loop_runner_join_group(workers);
    loop_runner_stop(control);
    ck_assert_uint_eq(atomic_load(&changing.upstream->group.load), 0);
    ck_assert_uint_eq(changing_remembered(), membership_now(changing_members())->n);
    ck_assert_uint_eq(ref_count(&changing.upstream->references), 1);
    ck_assert(wait_queue_is_idle(&changing.upstream->waiting));
    loop_runner_destroy(control);
    loop_group_destroy(workers);
}
