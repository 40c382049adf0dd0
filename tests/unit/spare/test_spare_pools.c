/*
 * spare/spare_pools: spare connections follow the configuration, on all loops, while sessions
 * take them.
 */
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "engine/loop_group.h"
#include "net/netloop.h"
#include "spare/spare_internal.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"
#include "upstream/upstream_change.h"

#define WORKERS 2
#define SERVERS 3
#define CHANGES 100

static struct address addresses[SERVERS];
static struct upstream_server_conf servers[SERVERS]; /* a, b, c */
static struct upstream_conf conf, next, none;        /* in use, each from its change on */
static struct upstream *upstream;
static struct loop_group *workers;
static struct loop *control;
static struct netloop *nets[WORKERS];
static struct spare_pool *pool_list[WORKERS];
static struct spare_pools *pools;
static int listening[SERVERS];
static unsigned before;

static void setup(void)
{
    static const char *const ids[] = {"a", "b", "c"};
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = WORKERS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    log_lines_capture(LOG_LEVEL_ERROR);
    before = process_descriptors();
    for (unsigned i = 0; i < SERVERS; i++) {
        listening[i] = sockets_listen(&addresses[i], 1024);
        servers[i] = (struct upstream_server_conf){.id = ids[i],
                                                   .address_text = "there",
                                                   .addresses = &addresses[i],
                                                   .n_addresses = 1,
                                                   .weight = 1};
    }
    conf = (struct upstream_conf){.name = "back",
                                  .servers = servers,
                                  .n_servers = 1,
                                  .connect_timeout_ns = UNTIL_LIMIT_NS,
                                  .spare = {.keep = WORKERS, .max_age_ns = 100 * UNTIL_LIMIT_NS}};
    control = loop_runner_create();
    ck_assert_int_eq(loop_group_create(&workers, &group), 0);
    ck_assert_int_eq(spare_pools_create(&pools, workers), 0);
    for (unsigned i = 0; i < WORKERS; i++) {
        ck_assert_int_eq(netloop_create(&nets[i], loop_group_at(workers, i)), 0);
        ck_assert_int_eq(spare_pools_add(pools, nets[i], i, &pool_list[i]), 0);
    }
}

static void do_stop(void *pool)
{
    spare_pool_stop(pool);
}

static void teardown(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        loop_runner_call(loop_group_at(workers, i), do_stop, pool_list[i]);
    loop_group_stop(workers, 0, NS_PER_S);
    loop_runner_join_group(workers);
    loop_runner_stop(control);
    spare_pools_destroy(pools);
    for (unsigned i = 0; i < WORKERS; i++)
        netloop_destroy(nets[i]);
    upstream_destroy(upstream);
    loop_runner_destroy(control);
    loop_group_destroy(workers);
    for (unsigned i = 0; i < SERVERS; i++)
        close(listening[i]);
    ck_assert_uint_eq(process_descriptors(), before);
}

/* As one listener does, or none. */
static void do_want(void *is_wanted)
{
    struct spare_pools_change *change;

    ck_assert_int_eq(spare_pools_prepare(pools, &upstream, *(bool *)is_wanted ? 1 : 0, &change), 0);
    spare_pools_commit(change);
    spare_pools_refresh(pools);
}

static void want(bool is_wanted)
{
    loop_runner_call(control, do_want, &is_wanted);
}

static void open_upstream(void)
{
    ck_assert_int_eq(
        upstream_create(&upstream, &conf,
                        &(struct upstream_env){.workers = workers, .spares = &spare_upstream_ops}),
        0);
    want(true);
}

static void do_change(void *arg)
{
    struct upstream_change *change;

    ck_assert_int_eq(upstream_change_prepare(&change, upstream, arg), 0);
    upstream_change_commit(change);
}

/* ${to} stays in use. */
static void change_to(const struct upstream_conf *to)
{
    loop_runner_call(control, do_change, (void *)(uintptr_t)to);
}

static struct upstream_server *server_at(unsigned i)
{
    return membership_now(&upstream->membership)->servers[i];
}

static unsigned spares_of(const struct upstream_server *server)
{
    const struct spare *sp = spare_of(server);

    return sp ? spare_now(sp) : 0;
}

GROUP(pools, setup, teardown);

TEST(pools, spares_are_opened_and_closed_by_the_configuration)
{
    next = none = conf;
    none.spare.keep = conf.spare.keep = 0;
    next.spare.keep = 2 * WORKERS;
    open_upstream();
    ck_assert_ptr_null(atomic_load(&server_at(0)->spare));
    change_to(&next);
    UNTIL(spares_of(server_at(0)) == 2 * WORKERS);
    change_to(&none);
    UNTIL(spares_of(server_at(0)) == 0);
    change_to(&next);
    UNTIL(spares_of(server_at(0)) == 2 * WORKERS);
}

static atomic_uint begun = UINT_MAX; /* spares of the first loop after its look */

static void run_count(struct task *t)
{
    (void)t;
    atomic_store(&begun, spare_part(spare_of(server_at(0)), 0)->n);
}

static const struct task_type count_type = {.run = run_count, .drop = run_count};

TEST(pools, refresh_starts_a_task_for_each_server)
{
    struct task count = {.type = &count_type};
    struct tasks_block block;

    next = conf;
    next.spare.keep = 2 * WORKERS;
    conf.spare.keep = 0;
    open_upstream();
    tasks_block_begin(&block, loop_group_at(workers, 0));
    change_to(&next);
    ck_assert_int_eq(loop_submit(loop_group_at(workers, 0), LOOP_TAIL, &count), 0);
    tasks_block_end(&block);
    UNTIL(spares_of(server_at(0)) == 2 * WORKERS);
    ck_assert_uint_eq(atomic_load(&begun), 0);
}

TEST(pools, spares_are_kept_when_their_settings_do_not_change)
{
    open_upstream();
    UNTIL(spares_of(server_at(0)) == WORKERS);
    next = conf;
    next.retries = 9;
    change_to(&next);
    PAUSE_MS(20);
    ck_assert_uint_eq(spares_of(server_at(0)), WORKERS);
    ck_assert_uint_eq(spare_of(server_at(0))->base.counts[SPARE_DROPPED], 0);
}

TEST(pools, added_servers_get_spares_and_removed_servers_lose_theirs)
{
    struct upstream_server *a;

    open_upstream();
    next = conf;
    a = server_at(0);
    UNTIL(spares_of(a) == WORKERS);
    next.servers = &servers[1];
    next.n_servers = 2;
    upstream_server_hold(a);
    change_to(&next);
    UNTIL(spares_of(a) == 0);
    for (unsigned i = 0; i < 2; i++)
        UNTIL(spares_of(server_at(i)) == WORKERS);
    upstream_server_release(a);
}

TEST(pools, unused_upstream_has_no_spares)
{
    open_upstream();
    UNTIL(spares_of(server_at(0)) == WORKERS);
    want(false);
    UNTIL(spares_of(server_at(0)) == 0);
    want(true);
    UNTIL(spares_of(server_at(0)) == WORKERS);
}

TEST(pools, backup_loses_its_spares_when_other_servers_are_added)
{
    static struct upstream_server_conf two[2];

    next = conf;
    servers[0].backup = true;
    two[0] = servers[0];
    two[1] = servers[1];
    next.servers = two;
    open_upstream();
    UNTIL(spares_of(server_at(0)) == WORKERS);
    next.n_servers = 2;
    change_to(&next);
    UNTIL(spares_of(server_at(0)) == 0);
    UNTIL(spares_of(server_at(1)) == WORKERS);
}

TEST(pools, spares_are_limited_by_max_connections)
{
    static struct upstream_server_conf one;

    one = servers[0];
    next = conf;
    one.max_connections = 1;
    next.servers = &one;
    open_upstream();
    UNTIL(spares_of(server_at(0)) == WORKERS);
    change_to(&next);
    UNTIL(spares_of(server_at(0)) == 1);
}

static int attempt(void *arg)
{
    struct spare_pools_change *change;
    int rc = spare_pools_prepare(pools, &upstream, 1, &change);

    (void)arg;
    if (rc == 0)
        spare_pools_cancel(change);
    return rc;
}

static int attempt_change(void *to)
{
    struct upstream_change *change;
    int rc = upstream_change_prepare(&change, upstream, to);

    if (rc == 0)
        upstream_change_cancel(change);
    return rc;
}

TEST(pools, failed_allocation_changes_nothing)
{
    next = conf;
    conf.spare.keep = 0;
    open_upstream();
    PAUSE_MS(10); /* no other thread allocates */
    ck_assert_uint_eq(fault_each_allocation(attempt, NULL), 3);
    (void)fault_each_allocation(attempt_change, &next);
    ck_assert_ptr_null(atomic_load(&server_at(0)->spare));
}

/* ---- while they are used ---- */

static atomic_bool over;

static void take_some(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;
    struct balancer_pick_state pick;
    struct upstream_server *server;
    struct session_spare taken;

    balancer_begin(&pick, 0);
    if (upstream_pick(upstream, &pick, &server) < 0)
        return;
    if (spare_take(pool_list[i], server, &taken)) {
        ck_assert_uint_lt(taken.which, taken.addresses->n);
        endpoint_release_addresses(taken.addresses);
        close(taken.fd);
    }
    upstream_leave(upstream, server, UPSTREAM_UNKNOWN);
}

static void *work(void *arg)
{
    while (!atomic_load(&over))
        loop_runner_call(loop_group_at(workers, (unsigned)(uintptr_t)arg), take_some, arg);
    return NULL;
}

static void change_some(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct upstream_change *change;
    struct spare_pools_change *spares;

    next = conf;
    ck_assert_int_eq(arena_create(&next.memory), 0);
    next.n_servers = 1 + n % SERVERS;
    next.spare.keep = n % 4;
    ck_assert_int_eq(upstream_change_prepare(&change, upstream, &next), 0);
    ck_assert_int_eq(spare_pools_prepare(pools, &upstream, n % 5 > 0, &spares), 0);
    upstream_change_commit(change);
    spare_pools_commit(spares);
    spare_pools_refresh(pools);
    arena_release(next.memory);
    (void)upstream_sweep_unused(upstream);
}

TEST(pools, sessions_take_spares_while_settings_change)
{
    pthread_t threads[WORKERS];

    open_upstream();
    for (uintptr_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (unsigned i = 0; i < CHANGES; i++)
        loop_runner_call(control, change_some, &i);
    atomic_store(&over, true);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    change_to(&conf);
    want(true);
    UNTIL(spares_of(server_at(0)) == WORKERS);
}
