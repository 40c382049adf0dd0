/* support/served: see served.h. */
#include "support/served.h"

#include <check.h>
#include <errno.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "engine/loop_group.h"
#include "service/session.h"
#include "sessions/carry_over.h"
#include "sessions/worker.h"
#include "stats/access_log.h"
#include "stats/access_log_format.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/until.h"

struct served served;

static const char *const served_names[SERVED_LISTENERS] = {"front", "other", "third"};

static int64_t served_on_admit(void *cookie, unsigned descriptors)
{
    (void)cookie;
    ck_assert_uint_le(descriptors, 2);
    return 0;
}

static void served_on_ended(void *cookie, const struct service *service)
{
    (void)cookie;
    listener_left(service);
    atomic_fetch_add(&served.ended, 1);
}

static void served_on_accepted(void *cookie, struct session *s)
{
    const struct service *service = s->service;

    ck_assert_ptr_eq(cookie, &served);
    for (unsigned i = 0; i < SERVED_LISTENERS; i++)
        if (strcmp(service->listener, served_names[i]) == 0)
            atomic_fetch_add(&served.accepted_by[i], 1);
    atomic_fetch_add(&served.accepted, 1);
    if (worker_hand_over(loop_group_next(served.workers), s) < 0) {
        session_refuse(s);
        served_on_ended(NULL, service);
    }
}

static void served_on_opened(void *cookie)
{
    ck_assert_ptr_eq(cookie, &served);
    atomic_fetch_add(&served.opened, 1);
}

static void served_on_replaced(void *cookie, struct list *generations)
{
    ck_assert_ptr_eq(cookie, &served);
    carry_over_begin(served.carry_over, generations);
}

static void served_on_stopped(void *cookie)
{
    ck_assert_ptr_eq(cookie, &served);
    atomic_fetch_add(&served.stopped, 1);
}

static ssize_t served_write(void *cookie, const char *lines, size_t len)
{
    (void)cookie;
    (void)lines;
    return (ssize_t)len;
}

static struct loop_group *served_group(const char *name, unsigned pool, unsigned n)
{
    struct loop_group_conf conf = {.name = name,
                                   .pool = pool,
                                   .n_loops = n,
                                   .loop = {.budget = {.io_ratio = 50, .quantum_ns = 5 * NS_PER_MS},
                                            .max_pending_tasks = 65536}};
    struct loop_group *g;

    ck_assert_int_eq(loop_group_create(&g, &conf), 0);
    return g;
}

static void served_open_loops(void)
{
    struct worker_env env = {.draining = &served.draining, .ended = served_on_ended};

    served.boss = served_group("boss", 1, 2);
    served.workers = served_group("work", 2, SERVED_WORKERS);
    served.control = loop_runner_create();
    for (unsigned i = 0; i < SERVED_WORKERS; i++)
        ck_assert_int_eq(
            worker_create(&served.worker_list[i], loop_group_at(served.workers, i), &env), 0);
}

static void served_open_logs(void)
{
    for (unsigned i = 0; i < SERVED_LOGS; i++) {
        const struct access_log_conf conf = {
            .name = "x", .sink = {.write = served_write}, .pool = 5, .max_bytes = 1 << 20};

        ck_assert_int_eq(access_log_create(&served.logs[i], &conf), 0);
    }
}

void served_enter(void)
{
    struct listeners_env env = {.connection_limit = &served.connection_limit,
                                .descriptors = &served.descriptors,
                                .admit = served_on_admit,
                                .accepted = served_on_accepted,
                                .opened = served_on_opened,
                                .stopped = served_on_stopped,
                                .replaced = served_on_replaced,
                                .cookie = &served};

    log_lines_capture(LOG_LEVEL_INFO);
    served.before = process_descriptors();
    connection_limit_init(&served.connection_limit, &(struct quota_conf){0});
    served.descriptors.max = 1000;
    for (unsigned i = 0; i < SERVED_LISTENERS; i++) {
        served.holders[i] = sockets_bound_everywhere(&served.addresses[i]);
        served.listeners[i] = (struct listener_conf){.name = served_names[i],
                                                     .addresses = &served.addresses[i],
                                                     .n_addresses = 1,
                                                     .service = LISTENER_ECHO,
                                                     .backlog = 128,
                                                     .reuseport = 1};
    }
    served.conf = (struct server_conf){.boss.accept_batch = 16, .listeners = served.listeners};
    served_open_loops();
    served_open_logs();
    env.boss = served.boss;
    env.control = served.control;
    ck_assert_int_eq(carry_over_create(&served.carry_over,
                                       &(struct carry_over_conf){.control = served.control,
                                                                 .boss = served.boss,
                                                                 .workers = served.workers,
                                                                 .list = served.worker_list}),
                     0);
    ck_assert_int_eq(listeners_create(&served.all, &env), 0);
}

static void served_end(struct loop_group *g)
{
    loop_group_stop(g, 0, 5 * NS_PER_S);
    loop_runner_join_group(g);
}

void served_leave(void)
{
    served_end(served.boss);
    served_end(served.workers);
    loop_runner_stop(served.control);
    ck_assert_uint_eq(atomic_load(&served.accepted), atomic_load(&served.ended));
    ck_assert_uint_eq(atomic_load(&served.connection_limit.quota.open), 0);
    arena_release(served.listeners[0].memory);
    carry_over_destroy(served.carry_over);
    listeners_destroy(served.all);
    ck_assert_uint_eq(atomic_load(&served.descriptors.used), 0);
    for (unsigned i = 0; i < SERVED_WORKERS; i++)
        worker_destroy(served.worker_list[i]);
    for (unsigned i = 0; i < SERVED_LOGS; i++) {
        ck_assert(!access_log_used(served.logs[i]));
        ck_assert_int_eq(access_log_finish(served.logs[i], clock_now_ns() + 10 * NS_PER_S), 0);
        access_log_destroy(served.logs[i]);
    }
    if (served.before_loops_go)
        served.before_loops_go();
    loop_runner_destroy(served.control);
    loop_group_destroy(served.boss);
    loop_group_destroy(served.workers);
    for (unsigned i = 0; i < SERVED_LISTENERS; i++)
        close(served.holders[i]);
    ck_assert_uint_eq(process_descriptors(), served.before);
}

static struct access_log *served_find_log(void *cookie, const char *where)
{
    (void)cookie;
    return served.logs[where[0] - '0'];
}

static void served_run_prepare(void *arg)
{
    const struct listeners_sources sources = {.list = served.conf.listeners,
                                              .n = served.conf.n_listeners,
                                              .accept_batch = served.conf.boss.accept_batch,
                                              .upstream = served.find_upstream,
                                              .access_log = served_find_log};
    int *rc = arg;

    *rc = listeners_prepare(served.all, &sources, &served.change);
}

int served_prepare(unsigned n)
{
    int rc = -EINVAL;

    served.conf.n_listeners = n;
    loop_runner_call(served.control, served_run_prepare, &rc);
    return rc;
}

static void served_run_commit(void *arg)
{
    (void)arg;
    listeners_commit(served.change);
}

static void served_run_cancel(void *arg)
{
    (void)arg;
    listeners_cancel(served.change);
}

void served_commit(void)
{
    loop_runner_call(served.control, served_run_commit, NULL);
}

void served_cancel(void)
{
    loop_runner_call(served.control, served_run_cancel, NULL);
}

void served_change(unsigned n)
{
    ck_assert_int_eq(served_prepare(n), 0);
    served_commit();
}

void served_start(unsigned n)
{
    served_change(n);
    ck_assert_int_eq(listeners_start(served.all), 0);
}

int served_client(unsigned i)
{
    int fd = sockets_connect(&served.addresses[i]);

    sockets_say(fd, "hello");
    sockets_hear(fd, "hello");
    return fd;
}

bool served_refused(unsigned i)
{
    const struct address *a = &served.addresses[i];
    int fd = socket(a->u.sa.sa_family, SOCK_STREAM, 0);
    int rc = connect(fd, &a->u.sa, a->len);
    int error = errno;

    close(fd);
    return rc < 0 && (error == ECONNREFUSED || error == ENOENT);
}

void served_log(unsigned i)
{
    struct access_log_format_problem problem;
    struct listener_conf *conf = &served.listeners[0];

    arena_release(conf->memory); /* as when the configuration before is freed */
    ck_assert_int_eq(arena_create(&conf->memory), 0);
    conf->access_log.own.where = i == 0 ? "0" : "1";
    ck_assert_int_eq(
        access_log_format_parse(&conf->access_log.own.format, "$reason", conf->memory, &problem),
        0);
}
