/*
 * server/checks: what a start waits for, and what follows when a server fails or passes a check.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "check/checker.h"
#include "engine/loop_group.h"
#include "server/checks.h"
#include "service/proxy.h"
#include "sessions/worker.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

#define SERVERS  2
#define NEVER_NS (3600 * NS_PER_S)

static struct loop *control;
static struct loop_group *workers;
static struct worker *worker;
static struct checks *checks;
static struct checks_change *change;
static struct upstream *upstream;
static struct upstream_next next;
static struct upstream_conf conf;
static struct upstream_server_conf servers[SERVERS];
static struct address addresses[SERVERS];
static int fds[SERVERS]; /* server 0 listens, server 1 refuses */
static const struct session_conf session_conf;
static struct service service;
static atomic_bool draining;
static atomic_uint ended;
static unsigned before;

static void on_ended(void *cookie, const struct service *of)
{
    (void)cookie;
    (void)of;
    atomic_fetch_add(&ended, 1);
}

static void open_worker(void)
{
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = 1,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct worker_env env = {.draining = &draining, .ended = on_ended};

    ck_assert_int_eq(loop_group_create(&workers, &group), 0);
    ck_assert_int_eq(worker_create(&worker, loop_group_at(workers, 0), &env), 0);
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    fds[0] = sockets_listen(&addresses[0], 16);
    fds[1] = sockets_bound(&addresses[1]);
    for (unsigned i = 0; i < SERVERS; i++)
        servers[i] = (struct upstream_server_conf){.id = i == 0 ? "a" : "b",
                                                   .address_text = "there",
                                                   .addresses = &addresses[i],
                                                   .n_addresses = 1,
                                                   .weight = 1};
    conf = (struct upstream_conf){
        .name = "back",
        .servers = servers,
        .n_servers = SERVERS,
        .balance = BALANCER_FIRST,
        .connect_timeout_ns = 5 * NS_PER_S,
        .checks = {.kind = UPSTREAM_CHECK_TCP,
                   .check = {.timeout_ns = UNTIL_LIMIT_NS},
                   .health = {.rise = 1, .fall = 1, .interval_ns = 20 * NS_PER_MS}}};
    control = loop_runner_create();
    open_worker();
}

static void create(void)
{
    struct checks_conf checks_conf = {.control = control, .loops = workers, .workers = &worker};

    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    ck_assert_int_eq(checks_create(&checks, &checks_conf), 0);
    next = (struct upstream_next){upstream, &conf};
    service = (struct service){
        .ops = &proxy_ops, .conf = &session_conf, .listener = "test", .upstream = upstream};
}

static atomic_bool started;

static void on_ready(void *cookie)
{
    checks_commit(cookie);
    atomic_store(&started, true);
}

static bool waits_for_check(struct upstream_server *server)
{
    return upstream_starts_down(&conf) && !atomic_load(&server->is_disabled) &&
           atomic_load(&server->endpoint.addresses);
}

static void do_begin(void *arg)
{
    const struct server_set *set = membership_now(&upstream->membership);
    const int64_t *wait_ns = arg;

    ck_assert_int_eq(checks_prepare(checks, &next, 1, 4, &change), 0);
    for (unsigned i = 0; i < set->n; i++)
        if (waits_for_check(set->servers[i]))
            ck_assert_int_eq(checks_try(change, 0, &conf, set->servers[i], set->servers[i]->conf),
                             0);
    if (!checks_wait(change, *wait_ns, on_ready, change))
        on_ready(change);
}

/* As the server does: servers that start down are checked before the others. */
static void begin(int64_t wait_ns)
{
    loop_runner_call(control, do_begin, &wait_ns);
    UNTIL(atomic_load(&started));
}

/* Without a warning: the first checks are decided, or none is waited for. */
static void start(void)
{
    create();
    begin(UNTIL_LIMIT_NS);
    ck_assert_uint_eq(log_lines_with("have no result after "), 0);
}

static void start_checked(void)
{
    conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    start();
}

static void teardown(void)
{
    loop_runner_stop(control);
    loop_group_stop(workers, 0, NS_PER_S);
    loop_runner_join_group(workers);
    checks_destroy(checks);
    worker_destroy(worker);
    upstream_destroy(upstream);
    loop_runner_destroy(control);
    loop_group_destroy(workers);
    for (unsigned i = 0; i < SERVERS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    ck_assert_uint_eq(process_descriptors(), before);
}

static struct upstream_server *server_at(unsigned i)
{
    return membership_now(&upstream->membership)->servers[i];
}

static uint32_t flags_of(unsigned i)
{
    return endpoint_load(&server_at(i)->endpoint) & ~ENDPOINT_COUNT_MASK;
}

/* ---- start ---- */

GROUP(checks, setup, teardown);

TEST(checks, start_does_not_wait_for_checks_of_servers_that_start_up)
{
    conf.checks.health.interval_ns = NEVER_NS;
    start();
    ck_assert_uint_eq(flags_of(0), 0);
}

TEST(checks, start_waits_for_the_first_check_of_each_server)
{
    conf.checks.health.interval_ns = NEVER_NS;
    start_checked();
    ck_assert_uint_eq(flags_of(0), 0);
    ck_assert_uint_eq(flags_of(1), ENDPOINT_DOWN);
}

TEST(checks, slow_first_checks_are_warned_of)
{
    int filler;

    ck_assert_int_eq(listen(fds[0], 0), 0);
    filler = sockets_connect(&addresses[0]); /* the backlog is full: no answer */
    conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    create();
    begin(50 * NS_PER_MS);
    EXPECT_LOG_LINES("have no result after ", 1);
    close(filler);
}

/* 0: the server is disabled; 1: its upstream has no checks. */
TEST_EACH(checks, server_without_checks_is_not_checked, 2)
{
    if (_i == 0)
        servers[1].disabled = true;
    else
        conf.checks.kind = UPSTREAM_CHECK_OFF;
    start_checked();
    loop_runner_turn(control);
    ck_assert(!checker_has(server_at(1)->target));
    ck_assert_int_eq(checker_has(server_at(0)->target), _i == 0);
    ck_assert_uint_eq(flags_of(1), 0);
}

/* ---- changes ---- */

TEST(checks, server_that_fails_a_check_is_down_until_a_check_passes)
{
    start();
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    ck_assert_int_eq(listen(fds[1], 16), 0);
    UNTIL(flags_of(1) == 0);
    ck_assert_uint_eq(flags_of(0), 0);
}

TEST(checks, passed_check_ends_an_ejection)
{
    struct balancer_pick_state pick;
    struct upstream_server *server;

    conf.ejection = (struct ejection_conf){
        .failures = 1, .time_ns = NEVER_NS, .time_max_ns = NEVER_NS, .max_percent = 100};
    create();
    balancer_begin(&pick, 0);
    ck_assert_int_eq(upstream_pick(upstream, &pick, &server), 0);
    upstream_leave(upstream, server, UPSTREAM_FAILED);
    ck_assert_ptr_eq(server, server_at(0));
    ck_assert_uint_eq(flags_of(0), ENDPOINT_EJECTED);
    begin(UNTIL_LIMIT_NS);
    UNTIL(flags_of(0) == 0);
    UNTIL(log_lines_with("server a: ejection over: a check has passed") == 1); /* logged after */
}

/* A client of a session on the worker. */
static int new_client(void)
{
    struct session *s;
    int ours, theirs;

    sockets_tcp(&ours, &theirs);
    ck_assert_int_eq(proxy_ops.create(&s, &service), 0);
    s->client_fd = ours;
    sockets_loopback(&s->peer, 1);
    ck_assert_int_eq(worker_hand_over(loop_group_at(workers, 0), s), 0);
    return theirs;
}

/* 0: on_down = keep; 1: close */
TEST_EACH(checks, sessions_of_a_server_that_fails_a_check_are_kept_or_closed, 2)
{
    int client, server;

    conf.checks.on_down = _i == 0 ? UPSTREAM_DOWN_KEEP : UPSTREAM_DOWN_CLOSE;
    start();
    client = new_client();
    server = sockets_accept(fds[0]);
    sockets_say(client, "question");
    sockets_hear(server, "question");
    close(fds[0]);
    fds[0] = -1;
    UNTIL(flags_of(0) == ENDPOINT_DOWN);
    if (_i == 0) {
        sockets_say(server, "answer");
        sockets_hear(client, "answer");
    } else {
        sockets_hear_reset(client);
        UNTIL(atomic_load(&ended) == 1);
    }
    close(client);
    close(server);
}

TEST(checks, queued_clients_get_a_server_that_passes_its_check)
{
    int holder, held, client, server;

    servers[0].max_connections = servers[1].max_connections = 1;
    conf.queue_length = 1;
    conf.queue_timeout_ns = NEVER_NS;
    start();
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    holder = new_client();
    held = sockets_accept(fds[0]);
    client = new_client();
    UNTIL(wait_queue_length(&upstream->waiting) == 1);
    ck_assert_int_eq(listen(fds[1], 16), 0);
    server = sockets_accept(fds[1]);
    sockets_say(client, "question");
    sockets_hear(server, "question");
    close(holder);
    close(held);
    close(client);
    close(server);
}

/* ---- names ---- */

static void do_lead_to(void *address)
{
    struct membership_place place = {.list = address, .n = 1, .weight = 1};
    struct membership *m = &upstream->membership;

    ck_assert_int_eq(membership_update(m, membership_find_line(m, "b"), &place, 1, NULL), 1);
}

TEST(checks, server_of_a_name_is_checked_while_the_name_resolves_to_it)
{
    struct upstream_server *server;

    servers[1].names = UPSTREAM_NAME_EACH;
    start();
    loop_runner_call(control, do_lead_to, &addresses[1]);
    server = server_at(1);
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    upstream_server_hold(server);
    loop_runner_call(control, do_lead_to, &addresses[0]);
    ck_assert_ptr_ne(server_at(1), server);
    ck_assert(!checker_has(server->target));
    ck_assert_uint_eq(endpoint_load(&server->endpoint), ENDPOINT_ABSENT);
    ck_assert(checker_has(server_at(1)->target));
    upstream_server_release(server);
}

static void do_name(void *arg)
{
    (void)arg;
    ck_assert_int_eq(upstream_set_addresses(upstream, server_at(1), &addresses[0], 1), 1);
}

TEST(checks, server_is_checked_as_soon_as_its_address_is_known)
{
    servers[1].names = UPSTREAM_NAME_ONE;
    servers[1].n_addresses = 0;
    conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    conf.checks.health.interval_ns = NEVER_NS;
    create();
    begin(50 * NS_PER_MS);
    ck_assert_uint_eq(flags_of(1), ENDPOINT_DOWN | ENDPOINT_ABSENT);
    loop_runner_call(control, do_name, NULL);
    UNTIL(flags_of(1) == 0);
}

/* ---- other configurations ---- */

static struct upstream_conf other_conf;

static int prepare(void *cookie)
{
    return checks_prepare(checks, cookie, 1, 8, &change);
}

static void do_change(void *arg)
{
    ck_assert_int_eq(prepare(arg), 0);
    checks_commit(change);
}

static void do_cancel(void *arg)
{
    ck_assert_int_eq(prepare(arg), 0);
    checks_cancel(change);
}

static void do_remove_all(void *arg)
{
    (void)arg;
    ck_assert_int_eq(checks_prepare(checks, NULL, 0, 0, &change), 0);
    checks_commit(change);
}

static void change_to(const struct upstream_conf *to)
{
    struct upstream_next list = {upstream, to};

    loop_runner_call(control, do_change, &list);
}

TEST(checks, servers_that_were_not_checked_stay_up_until_their_first_check_fails)
{
    other_conf = conf;
    conf.checks.kind = UPSTREAM_CHECK_OFF;
    start();
    other_conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    other_conf.checks.health.fall = 1000000;
    change_to(&other_conf);
    ck_assert(checker_has(server_at(0)->target));
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    ck_assert_uint_eq(flags_of(0), 0);
}

TEST(checks, servers_that_are_no_longer_checked_count_as_up)
{
    start();
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    other_conf = conf;
    other_conf.checks.kind = UPSTREAM_CHECK_OFF;
    change_to(&other_conf);
    ck_assert_uint_eq(flags_of(1), 0);
    ck_assert(!checker_has(server_at(1)->target));
    ck_assert_ptr_null(upstream->membership.watch.came);
    change_to(&conf);
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
}

TEST(checks, servers_of_an_upstream_that_is_removed_keep_their_flags)
{
    start();
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    ck_assert_int_eq(listen(fds[1], 16), 0);
    loop_runner_call(control, do_remove_all, NULL);
    ck_assert(!checker_has(server_at(1)->target));
    PAUSE_MS(50);
    ck_assert_uint_eq(flags_of(1), ENDPOINT_DOWN);
}

TEST(checks, changed_configuration_leaves_servers_up_or_down)
{
    start();
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    other_conf = conf;
    other_conf.checks.health.initial = HEALTH_STARTS_DOWN;
    other_conf.checks.health.rise = other_conf.checks.health.fall = 1000000;
    change_to(&other_conf);
    ck_assert_uint_eq(flags_of(0), 0);
    ck_assert_int_eq(listen(fds[1], 16), 0);
    PAUSE_MS(50);
    ck_assert_uint_eq(flags_of(0), 0);
    ck_assert_uint_eq(flags_of(1), ENDPOINT_DOWN);
    other_conf.checks.health.rise = 1;
    change_to(&other_conf);
    UNTIL(flags_of(1) == 0);
}

static struct upstream_server_conf other_servers[SERVERS];

/* The upstream gets `other_conf` with `other_servers`; its checks stay as they are. */
static void do_use_others(void *arg)
{
    struct upstream_change *use;

    (void)arg;
    other_conf.servers = other_servers;
    ck_assert_int_eq(upstream_change_prepare(&use, upstream, &other_conf), 0);
    upstream_change_commit(use);
}

static void start_with_others(void)
{
    start();
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    other_conf = conf;
    memcpy(other_servers, servers, sizeof(servers));
}

TEST(checks, server_can_be_disabled_and_enabled)
{
    start_with_others();
    other_servers[1].disabled = true;
    loop_runner_call(control, do_use_others, NULL);
    ck_assert(!checker_has(server_at(1)->target));
    ck_assert_uint_eq(flags_of(1), 0);
    other_servers[1].disabled = false;
    loop_runner_call(control, do_use_others, NULL);
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
}

/* 0: address; 1: port. The line before is gone, with its address. */
TEST_EACH(checks, server_can_be_checked_at_another_address_or_port, 2)
{
    start_with_others();
    if (_i == 0)
        other_servers[1].check_address = &addresses[0];
    else
        other_servers[1].check_port = address_port(&addresses[0]);
    loop_runner_call(control, do_use_others, NULL);
    UNTIL(flags_of(1) == 0);
    other_servers[1].check_address = NULL;
    other_servers[1].check_port = 0;
    loop_runner_call(control, do_use_others, NULL);
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
}

TEST(checks, server_added_again_by_a_reload_is_checked)
{
    start_with_others();
    other_conf.n_servers = 1;
    loop_runner_call(control, do_use_others, NULL);
    PAUSE_MS(50);
    other_conf.n_servers = 2;
    loop_runner_call(control, do_use_others, NULL);
    ck_assert(checker_has(server_at(1)->target));
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
}

TEST(checks, cancelled_change_leaves_no_trace)
{
    struct upstream_next list = {NULL, &other_conf};
    unsigned open;

    conf.checks.kind = UPSTREAM_CHECK_OFF;
    start();
    other_conf = conf;
    other_conf.checks.kind = UPSTREAM_CHECK_TCP;
    list.upstream = upstream;
    open = process_descriptors();
    loop_runner_call(control, do_cancel, &list);
    ck_assert_uint_le(process_descriptors(), open + 1); /* of the loop, for checks */
    ck_assert(!checker_has(server_at(0)->target));
    ck_assert_ptr_null(upstream->membership.watch.came);
    change_to(&other_conf);
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
    loop_runner_call(control, do_cancel, &list);
    ck_assert(checker_has(server_at(0)->target));
}

static void do_fail(void *arg)
{
    /* What the first group needs stays for later ones; then the change, a group of two, rules. */
    ck_assert_uint_ge(fault_each_allocation(prepare, arg), 5);
    checks_cancel(change);
    ck_assert_uint_ge(fault_each_allocation(prepare, arg), 4);
    checks_cancel(change);
}

TEST(checks, failed_allocation_changes_nothing)
{
    struct upstream_next list = {NULL, &other_conf};

    conf.checks.kind = UPSTREAM_CHECK_OFF;
    start();
    other_conf = conf;
    other_conf.checks.kind = UPSTREAM_CHECK_TCP;
    list.upstream = upstream;
    loop_runner_call(control, do_fail, &list);
    ck_assert(!checker_has(server_at(0)->target));
    ck_assert_uint_eq(flags_of(1), 0);
    change_to(&other_conf);
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
}

static void do_prepare_wrong(void *arg)
{
    ck_assert_int_eq(prepare(arg), -EINVAL);
}

TEST(checks, invalid_check_settings_are_refused_and_logged)
{
    struct upstream_next list = {NULL, &other_conf};

    start();
    other_conf = conf;
    other_conf.checks.check.timeout_ns = 0;
    list.upstream = upstream;
    loop_runner_call(control, do_prepare_wrong, &list);
    EXPECT_LOG_LINES("upstream back: servers cannot be checked: Invalid", 1);
    UNTIL(flags_of(1) == ENDPOINT_DOWN);
}

/* ---- at a time ---- */

TEST(checks, at_most_one_check_per_server_runs_at_a_time)
{
    create();
    ck_assert_uint_eq(checks_at_a_time(&next, 1, 100), 2);
    ck_assert_uint_eq(checks_at_a_time(&next, 1, 1), 1);
    ck_assert_uint_eq(checks_at_a_time(&next, 1, 0), 1);
    servers[0].disabled = true; /* may be enabled at run time */
    ck_assert_uint_eq(checks_at_a_time(&next, 1, 100), 2);
    servers[1].names = UPSTREAM_NAME_EACH;
    ck_assert_uint_eq(checks_at_a_time(&next, 1, 100), CHECKS_OF_A_NAME + 1);
    servers[1].disabled = true;
    ck_assert_uint_eq(checks_at_a_time(&next, 1, 100), 1);
    servers[0].names = UPSTREAM_NAME_ONE;
    ck_assert_uint_eq(checks_at_a_time(&next, 1, 100), 0);
    conf.checks.kind = UPSTREAM_CHECK_OFF;
    ck_assert_uint_eq(checks_at_a_time(&next, 1, 100), 0);
}
