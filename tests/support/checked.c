#include "support/checked.h"

#include <check.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "server/checks.h"
#include "service/proxy.h"
#include "sessions/worker.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"
#include "upstream/upstream.h"

struct checked checked;
static struct worker *worker;
static const struct session_conf session_conf;
static atomic_bool draining;
static unsigned before;

static void on_ended(void *cookie, const struct service *of)
{
    (void)cookie;
    (void)of;
    atomic_fetch_add(&checked.ended, 1);
}

static void open_worker(void)
{
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = 1,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct worker_env env = {.draining = &draining, .ended = on_ended};

    ck_assert_int_eq(loop_group_create(&checked.workers, &group), 0);
    ck_assert_int_eq(worker_create(&worker, loop_group_at(checked.workers, 0), &env), 0);
}

void checked_setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    checked.fds[0] = sockets_listen(&checked.addresses[0], 16);
    checked.fds[1] = sockets_bound(&checked.addresses[1]);
    for (unsigned i = 0; i < SERVERS; i++)
        checked.servers[i] = (struct upstream_server_conf){.id = i == 0 ? "a" : "b",
                                                           .address_text = "there",
                                                           .addresses = &checked.addresses[i],
                                                           .n_addresses = 1,
                                                           .weight = 1};
    checked.conf = (struct upstream_conf){
        .name = "back",
        .servers = checked.servers,
        .n_servers = SERVERS,
        .balance = BALANCER_FIRST,
        .connect_timeout_ns = 5 * NS_PER_S,
        .checks = {.kind = UPSTREAM_CHECK_TCP,
                   .check = {.timeout_ns = UNTIL_LIMIT_NS},
                   .health = {.rise = 1, .fall = 1, .interval_ns = 20 * NS_PER_MS}}};
    checked.control = loop_runner_create();
    open_worker();
}

void checked_create(void)
{
    struct checks_conf checks_conf = {
        .control = checked.control, .loops = checked.workers, .workers = &worker};

    ck_assert_int_eq(upstream_create(&checked.upstream, &checked.conf, NULL), 0);
    ck_assert_int_eq(checks_create(&checked.checks, &checks_conf), 0);
    checked.next = (struct upstream_next){checked.upstream, &checked.conf};
    checked.service = (struct service){
        .ops = &proxy_ops, .conf = &session_conf, .listener = "test", .upstream = checked.upstream};
}

static atomic_bool started;

static void on_ready(void *cookie)
{
    checks_commit(cookie);
    atomic_store(&started, true);
}

static bool waits_for_check(struct upstream_server *server)
{
    return upstream_starts_down(&checked.conf, atomic_load(&server->conf)) &&
           !atomic_load(&server->is_disabled) && atomic_load(&server->endpoint.addresses);
}

static void do_begin(void *arg)
{
    const struct server_set *set = membership_now(&checked.upstream->membership);
    const int64_t *wait_ns = arg;

    ck_assert_int_eq(checks_prepare(checked.checks, &checked.next, 1, 4, &checked.change), 0);
    for (unsigned i = 0; i < set->n; i++)
        if (waits_for_check(set->servers[i]))
            ck_assert_int_eq(checks_try(checked.change, 0, &checked.conf, set->servers[i],
                                        set->servers[i]->conf),
                             0);
    if (!checks_wait(checked.change, *wait_ns, on_ready, checked.change))
        on_ready(checked.change);
}

void checked_begin(int64_t wait_ns)
{
    loop_runner_call(checked.control, do_begin, &wait_ns);
    UNTIL(atomic_load(&started));
}

void checked_start(void)
{
    checked_create();
    checked_begin(UNTIL_LIMIT_NS);
    ck_assert_uint_eq(log_lines_with("have no result after "), 0);
}

void checked_teardown(void)
{
    loop_runner_stop(checked.control);
    loop_group_stop(checked.workers, 0, NS_PER_S);
    loop_runner_join_group(checked.workers);
    checks_destroy(checked.checks);
    worker_destroy(worker);
    upstream_destroy(checked.upstream);
    loop_runner_destroy(checked.control);
    loop_group_destroy(checked.workers);
    for (unsigned i = 0; i < SERVERS; i++)
        if (checked.fds[i] >= 0)
            close(checked.fds[i]);
    ck_assert_uint_eq(process_descriptors(), before);
}

struct upstream_server *checked_server_at(unsigned i)
{
    return membership_now(&checked.upstream->membership)->servers[i];
}

uint32_t checked_flags_of(unsigned i)
{
    return endpoint_load(&checked_server_at(i)->endpoint) & ~ENDPOINT_COUNT_MASK;
}

int checked_prepare(void *cookie)
{
    return checks_prepare(checked.checks, cookie, 1, 8, &checked.change);
}

static void do_change(void *arg)
{
    ck_assert_int_eq(checked_prepare(arg), 0);
    checks_commit(checked.change);
}

void checked_change_to(const struct upstream_conf *to)
{
    struct upstream_next list = {checked.upstream, to};

    loop_runner_call(checked.control, do_change, &list);
}
