/*
 * listen/listeners at the start: all addresses or none, each closed once, and nothing left of a
 * unix socket but for others.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "limits/connection_limit.h"
#include "listen/listeners.h"
#include "net/sock.h"
#include "service/session.h"
#include "stats/access_log.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop_group *boss;
static struct listeners *listeners;
static struct address addresses[2];
static struct listener_conf conf;
static struct connection_limit limit;
static struct access_log *access_log; /* NULL: off */
static atomic_uint accepted, opened, stopped;
static atomic_bool preface; /* of the last accepted */
static int holders[2];      /* of the addresses' ports */
static unsigned before;

static int64_t on_admit(void *cookie, unsigned descriptors)
{
    (void)cookie;
    ck_assert_uint_eq(descriptors, 1); /* an echo's */
    return 0;
}

static void on_accepted(void *cookie, struct session *s)
{
    const struct service *service = s->service;

    ck_assert_ptr_eq(cookie, &conf);
    ck_assert_str_eq(service->listener, "front");
    atomic_store(&preface, s->preface);
    session_refuse(s);
    listener_left(service);
    atomic_fetch_add(&accepted, 1);
}

static void on_opened(void *cookie)
{
    ck_assert_ptr_eq(cookie, &conf);
    atomic_fetch_add(&opened, 1);
}

static void on_stopped(void *cookie)
{
    ck_assert_ptr_eq(cookie, &conf);
    atomic_fetch_add(&stopped, 1);
}

static void setup(void)
{
    struct loop_group_conf group = {
        .name = "boss",
        .pool = 1,
        .n_loops = 2,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    log_lines_capture(LOG_LEVEL_INFO);
    connection_limit_init(&limit, &(struct quota_conf){0});
    for (int i = 0; i < 2; i++)
        holders[i] = sockets_bound(&addresses[i]);
    conf = (struct listener_conf){.name = "front",
                                  .addresses = addresses,
                                  .n_addresses = 1,
                                  .service = LISTENER_ECHO,
                                  .backlog = 16,
                                  .reuseport = 1};
    ck_assert_int_eq(loop_group_create(&boss, &group), 0);
    before = process_descriptors();
}

static struct access_log *find_access_log(void *cookie, const char *where)
{
    ck_assert_ptr_eq(cookie, &conf);
    ck_assert_str_eq(where, "x");
    return access_log;
}

static int create(void)
{
    struct listeners_env env = {.boss = boss,
                                .connection_limit = &limit,
                                .admit = on_admit,
                                .accepted = on_accepted,
                                .opened = on_opened,
                                .stopped = on_stopped,
                                .cookie = &conf};
    const struct listeners_sources sources = {
        .list = &conf, .n = 1, .accept_batch = 16, .access_log = find_access_log, .cookie = &conf};
    struct listeners_change *change;
    int rc;

    ck_assert_int_eq(listeners_create(&listeners, &env), 0);
    rc = listeners_prepare(listeners, &sources, &change);
    if (rc == 0)
        listeners_commit(change);
    return rc;
}

static void end_boss(void)
{
    loop_group_stop(boss, 0, 5 * NS_PER_S);
    loop_runner_join_group(boss);
}

static void teardown(void)
{
    if (loop_group_next(boss))
        end_boss();
    listeners_destroy(listeners);
    ck_assert_uint_eq(process_descriptors(), before);
    loop_group_destroy(boss);
    for (int i = 0; i < 2; i++)
        close(holders[i]);
}

static void expect_refused(const struct address *a)
{
    int fd = socket(a->u.sa.sa_family, SOCK_STREAM, 0);

    ck_assert_int_eq(connect(fd, &a->u.sa, a->len), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    close(fd);
}

GROUP(listeners, setup, teardown);

TEST(listeners, new_listener_listens_and_accepts_no_client)
{
    int client;

    conf.n_addresses = 2;
    ck_assert_int_eq(create(), 0);
    ck_assert_uint_eq(listeners_sockets(listeners), 2);
    UNTIL(process_loops() == 0);
    EXPECT_LOG_LINES("listen front: echo on 127.0.0.1:", 2);
    client = sockets_connect(&addresses[1]);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&accepted), 0);
    close(client);
}

static ssize_t write_nothing(void *cookie, const char *lines, size_t len)
{
    (void)cookie, (void)lines;
    return (ssize_t)len;
}

TEST(listeners, listener_uses_its_access_log_until_it_is_destroyed)
{
    const struct access_log_conf log = {
        .name = "x", .sink = {.write = write_nothing}, .pool = 5, .max_bytes = 1 << 20};

    ck_assert_int_eq(access_log_create(&access_log, &log), 0);
    conf.access_log.own.where = "x";
    ck_assert_int_eq(create(), 0);
    ck_assert(access_log_used(access_log));
    listeners_destroy(listeners);
    listeners = NULL;
    ck_assert(!access_log_used(access_log));
    access_log_destroy(access_log);
    access_log = NULL;
}

TEST(listeners, a_started_listener_accepts_on_every_address)
{
    conf.n_addresses = 2;
    ck_assert_int_eq(create(), 0);
    ck_assert_int_eq(listeners_start(listeners), 0);
    for (int i = 0; i < 2; i++)
        close(sockets_connect(&addresses[i]));
    UNTIL(atomic_load(&accepted) == 2);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 2);
    expect_refused(&addresses[0]);
    expect_refused(&addresses[1]);
}

TEST(listeners, address_in_use_releases_the_other_addresses)
{
    struct sock_listen_conf listen_conf = {.backlog = 1};
    int fd;

    ck_assert_int_eq(listen(holders[1], 1), 0);
    conf.n_addresses = 2;
    ck_assert_int_eq(create(), -EADDRINUSE);
    ck_assert_uint_eq(process_descriptors(), before);
    EXPECT_LOG_LINES("cannot listen: Address already in use", 1);
    ck_assert_int_eq(sock_listen(&fd, &addresses[0], &listen_conf), 0);
    close(fd);
}

TEST(listeners, each_address_has_as_many_sockets_as_reuseport_says)
{
    conf.n_addresses = 2;
    conf.reuseport = 4;
    sockets_path(&addresses[1], "front");
    ck_assert_int_eq(create(), 0);
    ck_assert_uint_eq(listeners_sockets(listeners), 5); /* a unix socket cannot be shared */
    ck_assert_int_eq(listeners_start(listeners), 0);
    for (int i = 0; i < 40; i++)
        close(sockets_connect(&addresses[0]));
    UNTIL(atomic_load(&accepted) == 40);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 5);
}

TEST(listeners, stopping_a_paused_listener_accepts_the_clients_of_its_backlog)
{
    int clients[10];

    ck_assert_int_eq(create(), 0);
    ck_assert_int_eq(listeners_start(listeners), 0);
    fault_plan(FAULT_ACCEPT4, 0, 1, EMFILE); /* the listener pauses */
    for (int i = 0; i < 10; i++)
        clients[i] = sockets_connect(&addresses[0]);
    UNTIL(fault_calls(FAULT_ACCEPT4) > 0);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert_uint_eq(atomic_load(&accepted), 10);
    for (int i = 0; i < 10; i++)
        close(clients[i]);
}

TEST(listeners, boss_that_cannot_start_is_reported)
{
    ck_assert_int_eq(create(), 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(listeners_start(listeners), -EAGAIN);
}

TEST(listeners, stopping_a_listener_that_was_not_started_is_reported)
{
    ck_assert_int_eq(create(), 0);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
}

TEST(listeners, stopping_a_listener_of_an_ended_boss_is_reported)
{
    ck_assert_int_eq(create(), 0);
    ck_assert_int_eq(listeners_start(listeners), 0);
    end_boss();
    listeners_stop(listeners);
    ck_assert_uint_eq(atomic_load(&stopped), 1);
}

TEST(listeners, listener_of_a_boss_stopped_by_its_timeout_is_closed_without_accepting)
{
    struct tasks_block block;
    int client;

    ck_assert_int_eq(create(), 0);
    ck_assert_int_eq(listeners_start(listeners), 0);
    loop_runner_stats(loop_group_at(boss, 0));
    tasks_block_begin(&block, loop_group_at(boss, 0));
    client = sockets_connect(&addresses[0]);
    listeners_stop(listeners);
    loop_group_stop(boss, 0, 0);
    tasks_block_end(&block);
    loop_runner_join_group(boss);
    ck_assert_uint_eq(atomic_load(&stopped), 1);
    listeners_destroy(listeners);
    listeners = NULL;
    ck_assert_uint_eq(atomic_load(&accepted), 0); /* there is no loop any more to do it on */
    sockets_hear_reset(client);
    close(client);
}

/* ---- places ---- */

/* One client at a time: a place that is not given back keeps the next one out. */
static void start_with_one_place(enum quota_over over)
{
    connection_limit_init(&limit, &(struct quota_conf){.max_connections = 1});
    conf.quota.max_connections = 1;
    conf.over_limit = over;
    ck_assert_int_eq(create(), 0);
    ck_assert_int_eq(listeners_start(listeners), 0);
}

static void stop_with_all_places_free(void)
{
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert_uint_eq(atomic_load(&limit.quota.open), 0);
}

TEST_EACH(listeners, connection_of_a_client_that_no_worker_takes_is_not_counted, 2)
{
    start_with_one_place(_i == 0 ? QUOTA_OVER_WAIT : QUOTA_OVER_CLOSE);
    for (unsigned i = 1; i <= 3; i++) {
        int client = sockets_connect(&addresses[0]);

        UNTIL(atomic_load(&accepted) == i);
        close(client);
    }
    stop_with_all_places_free();
}

TEST_EACH(listeners, denied_client_is_not_counted_in_max_connections, 2)
{
    conf.access.deny_others = true;
    conf.on_deny = ADMISSION_CLOSE;
    start_with_one_place(_i == 0 ? QUOTA_OVER_WAIT : QUOTA_OVER_CLOSE);
    for (unsigned i = 1; i <= 3; i++) {
        int client = sockets_connect(&addresses[0]);

        sockets_hear_end(client);
        close(client);
    }
    ck_assert_uint_eq(atomic_load(&accepted), 0);
    ck_assert_uint_eq(log_lines_with("max_connections"), 0);
    stop_with_all_places_free();
}

/* ---- proxies ---- */

/* 0: no header is accepted; 1: one is required, and the peer is no proxy; 2: it is one. */
TEST_EACH(listeners, only_a_trusted_proxy_may_name_its_client, 3)
{
    struct cidr trusted;
    int client;

    ck_assert_int_eq(cidr_parse(&trusted, _i == 2 ? "127.0.0.0/8" : "192.0.2.0/24"), 0);
    conf.accept_proxy =
        (struct proxy_protocol_conf){.mode = _i == 0 ? PROXY_PROTOCOL_OFF : PROXY_PROTOCOL_REQUIRED,
                                     .trusted = {.list = &trusted, .n = 1}};
    ck_assert_int_eq(create(), 0);
    ck_assert_int_eq(listeners_start(listeners), 0);
    client = sockets_connect(&addresses[0]);
    sockets_hear_reset(client); /* all are: see on_accepted() */
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert_uint_eq(atomic_load(&accepted), _i != 1);
    ck_assert_int_eq(atomic_load(&preface), _i == 2);
    EXPECT_LOG_LINES(": not a trusted proxy", _i == 1);
    close(client);
}

/* ---- unix sockets ---- */

static bool exists(void)
{
    struct stat st;

    return lstat(addresses[0].u.un.sun_path, &st) == 0;
}

TEST(listeners, unix_socket_is_unlinked_when_its_listener_has_stopped)
{
    sockets_path(&addresses[0], "front");
    ck_assert_int_eq(create(), 0);
    ck_assert(exists());
    ck_assert_int_eq(listeners_start(listeners), 0);
    close(sockets_connect(&addresses[0]));
    UNTIL(atomic_load(&accepted) == 1);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert(!exists());
}

TEST(listeners, a_unix_socket_of_a_successor_is_left_alone)
{
    struct sock_listen_conf listen_conf = {.backlog = 1};
    int fd;

    sockets_path(&addresses[0], "front");
    ck_assert_int_eq(create(), 0);
    ck_assert_int_eq(listeners_start(listeners), 0);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert_int_eq(sock_listen(&fd, &addresses[0], &listen_conf), 0);
    end_boss();
    listeners_destroy(listeners);
    listeners = NULL;
    ck_assert(exists());
    close(fd);
    sock_unlink(&addresses[0]);
}

TEST(listeners, a_unix_socket_that_was_never_started_is_removed)
{
    sockets_path(&addresses[0], "front");
    ck_assert_int_eq(create(), 0);
    end_boss();
    listeners_destroy(listeners);
    listeners = NULL;
    ck_assert(!exists());
}

TEST(listeners, destroying_null_is_allowed)
{
    listeners_destroy(NULL);
}
