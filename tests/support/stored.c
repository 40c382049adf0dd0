#include "support/stored.h"

#include <check.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "limits/connection_limit.h"
#include "listen/listener_generation.h"
#include "listen/listeners.h"
#include "listen/socket_store.h"
#include "net/sock.h"
#include "service/session.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"

static struct loop_group *boss;
static struct loop *control;
static struct connection_limit limit;
static unsigned before;

/* The store. */
static int given[3];

static unsigned on_count(void *cookie, const struct address *of)
{
    (void)cookie;
    ck_assert(address_equal(of, &stored.a));
    return stored.n_given;
}

static int on_take(void *cookie, const struct address *of)
{
    (void)cookie, (void)of;
    return stored.n_given > 0 ? given[--stored.n_given] : -1;
}

static bool on_keep(void *cookie, const struct address *of, int fd)
{
    (void)cookie;
    ck_assert(address_equal(of, &stored.a));
    ck_assert_int_ne(sockets_option(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
    stored.n_kept++;
    return stored.keeps;
}

static bool on_forget(void *cookie, const struct address *of)
{
    (void)cookie;
    ck_assert(address_equal(of, &stored.a));
    stored.n_forgotten++;
    return stored.forgets;
}

struct stored stored = {
    .shared = {.backlog = 16, .reuseport = true},
    .store = {.count = on_count, .take = on_take, .keep = on_keep, .forget = on_forget}};

static int64_t on_admit(void *cookie, unsigned descriptors)
{
    (void)cookie, (void)descriptors;
    return 0;
}

static void on_accepted(void *cookie, struct session *s)
{
    const struct service *service = s->service;

    (void)cookie;
    session_refuse(s);
    listener_left(service);
    atomic_fetch_add(&stored.accepted, 1);
}

static void on_opened(void *cookie)
{
    (void)cookie;
}

static void on_stopped(void *cookie)
{
    (void)cookie;
    atomic_fetch_add(&stored.stopped, 1);
}

/* No session is carried over. */
static void on_replaced(void *cookie, struct list *generations)
{
    (void)cookie;
    while (!list_empty(generations)) {
        struct listener_generation *gen = LIST_FIRST(generations, struct listener_generation, link);

        list_remove(&gen->link);
        listener_generation_release(gen);
    }
}

void stored_setup(void)
{
    struct loop_group_conf group = {
        .name = "boss",
        .pool = 1,
        .n_loops = 2,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct listeners_env env = {.connection_limit = &limit,
                                .store = &stored.store,
                                .admit = on_admit,
                                .accepted = on_accepted,
                                .opened = on_opened,
                                .stopped = on_stopped,
                                .replaced = on_replaced};

    log_lines_capture(LOG_LEVEL_INFO);
    connection_limit_init(&limit, &(struct quota_conf){0});
    stored.conf = (struct listener_conf){.name = "front",
                                         .addresses = &stored.a,
                                         .n_addresses = 1,
                                         .service = LISTENER_ECHO,
                                         .backlog = 16,
                                         .reuseport = 1};
    before = process_descriptors();
    ck_assert_int_eq(loop_group_create(&boss, &group), 0);
    control = env.control = loop_runner_create();
    env.boss = boss;
    ck_assert_int_eq(listeners_create(&stored.listeners, &env), 0);
}

int stored_prepare(struct listeners_change **change, unsigned n)
{
    const struct listeners_sources sources = {.list = &stored.conf, .n = n, .accept_batch = 16};

    return listeners_prepare(stored.listeners, &sources, change);
}

static void change_to(void *n)
{
    struct listeners_change *change;

    ck_assert_int_eq(stored_prepare(&change, *(unsigned *)n), 0);
    listeners_commit(change);
}

void stored_configure(unsigned n)
{
    loop_runner_call(control, change_to, &n);
}

void stored_end_boss(void)
{
    loop_group_stop(boss, 0, 5 * NS_PER_S);
    loop_runner_join_group(boss);
}

void stored_teardown(void)
{
    if (loop_group_next(boss))
        stored_end_boss();
    loop_runner_stop(control);
    listeners_destroy(stored.listeners);
    loop_group_destroy(boss);
    loop_runner_destroy(control);
    ck_assert_uint_eq(process_descriptors(), before);
    sock_unlink(&stored.a);
}

void stored_give(int fd)
{
    given[stored.n_given++] = fd;
}

int stored_give_path(void)
{
    int fd;

    sockets_path(&stored.a, "store");
    ck_assert_int_eq(sock_listen(&fd, &stored.a, &stored.shared), 0);
    stored_give(fd);
    return fd;
}

bool stored_has_file(void)
{
    struct stat st;

    return lstat(stored.a.u.un.sun_path, &st) == 0;
}

void stored_knock(unsigned n)
{
    while (n-- > 0) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void)connect(fd, &stored.a.u.sa, stored.a.len);
        close(fd);
    }
}

void stored_open_path(void)
{
    sockets_path(&stored.a, "left");
    stored_configure(1);
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
}
