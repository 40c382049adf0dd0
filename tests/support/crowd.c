#include "support/crowd.h"

#include <check.h>
#include <string.h>
#include <unistd.h>

#include "engine/loop_group.h"
#include "service/echo.h"
#include "sessions/worker.h"
#include "stats/access_log_record.h"
#include "stats/counters.h"
#include "support/loop_runner.h"
#include "support/sockets.h"

#define CROWD_PORT 1000

struct crowd crowd;

static struct loop_group *group;
static struct worker *workers[CROWD_WORKERS];
static struct service_ops ops;
static const struct session_conf session_conf;
static struct service service;
static struct counters counters;
static atomic_bool draining;

static void on_ended(void *cookie, const struct service *of)
{
    (void)cookie;
    (void)of;
    atomic_fetch_add(&crowd.ended, 1);
}

static void describe(const struct session *s, struct access_log_record *r)
{
    r->upstream = "back";
    r->server = ntohs(s->peer.u.in.sin_port) % 2 == 0 ? "a" : "b@there";
}

void crowd_enter(void)
{
    struct loop_group_conf conf = {
        .name = "work",
        .pool = 2,
        .n_loops = CROWD_WORKERS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 1024}};
    struct worker_env env = {.draining = &draining, .ended = on_ended};

    ops = echo_ops;
    ops.describe = describe;
    service = (struct service){
        .ops = &ops, .conf = &session_conf, .listener = "front", .counters = &counters};
    ck_assert_int_eq(loop_group_create(&group, &conf), 0);
    for (unsigned i = 0; i < CROWD_WORKERS; i++)
        ck_assert_int_eq(worker_create(&workers[i], loop_group_at(group, i), &env), 0);
    crowd.counters = &counters;
    crowd.asker = loop_runner_create();
    crowd.workers = (struct session_scan_workers){.loops = group, .list = workers};
}

void crowd_leave(void)
{
    loop_group_stop(group, 0, NS_PER_S);
    loop_runner_join_group(group);
    for (unsigned i = 0; i < CROWD_WORKERS; i++)
        worker_destroy(workers[i]);
    loop_runner_destroy(crowd.asker);
    loop_group_destroy(group);
    for (unsigned i = 0; i < crowd.n; i++)
        close(crowd.clients[i]);
}

void crowd_add(unsigned n, unsigned worker)
{
    for (unsigned end = crowd.n + n; crowd.n < end; crowd.n++) {
        struct session *s;
        int ours;

        sockets_tcp(&ours, &crowd.clients[crowd.n]);
        ck_assert_int_eq(ops.create(&s, &service), 0);
        s->client_fd = ours;
        sockets_loopback(&s->peer, CROWD_PORT + crowd.n);
        ck_assert_int_eq(worker_hand_over(loop_group_at(group, worker), s), 0);
        sockets_say(crowd.clients[crowd.n], "x");
        sockets_hear(crowd.clients[crowd.n], "x");
    }
}

void crowd_stop_worker(unsigned i)
{
    loop_stop(loop_group_at(group, i), 0, 0);
    loop_runner_join(loop_group_at(group, i));
}
