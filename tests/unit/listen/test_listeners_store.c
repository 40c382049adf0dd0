/* listen/listeners with a store: what they take, what they have kept, what becomes of files. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
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
#include "support/suite.h"
#include "support/until.h"

static const struct sock_listen_conf shared = {.backlog = 16, .reuseport = true};
static struct loop_group *boss;
static struct loop *control;
static struct listeners *listeners;
static struct address a;
static struct listener_conf conf;
static struct connection_limit limit;
static atomic_uint accepted, stopped;
static unsigned before;

/* The store. */
static int given[3];
static unsigned n_given, n_kept, n_forgotten;
static bool keeps, forgets;

static unsigned on_count(void *cookie, const struct address *of)
{
    (void)cookie;
    ck_assert(address_equal(of, &a));
    return n_given;
}

static int on_take(void *cookie, const struct address *of)
{
    (void)cookie, (void)of;
    return n_given > 0 ? given[--n_given] : -1;
}

static bool on_keep(void *cookie, const struct address *of, int fd)
{
    (void)cookie;
    ck_assert(address_equal(of, &a));
    ck_assert_int_ne(sockets_option(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
    n_kept++;
    return keeps;
}

static bool on_forget(void *cookie, const struct address *of)
{
    (void)cookie;
    ck_assert(address_equal(of, &a));
    n_forgotten++;
    return forgets;
}

static struct socket_store store = {
    .count = on_count, .take = on_take, .keep = on_keep, .forget = on_forget};

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
    atomic_fetch_add(&accepted, 1);
}

static void on_opened(void *cookie)
{
    (void)cookie;
}

static void on_stopped(void *cookie)
{
    (void)cookie;
    atomic_fetch_add(&stopped, 1);
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

static void setup(void)
{
    struct loop_group_conf group = {
        .name = "boss",
        .pool = 1,
        .n_loops = 2,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct listeners_env env = {.connection_limit = &limit,
                                .store = &store,
                                .admit = on_admit,
                                .accepted = on_accepted,
                                .opened = on_opened,
                                .stopped = on_stopped,
                                .replaced = on_replaced};

    log_lines_capture(LOG_LEVEL_INFO);
    connection_limit_init(&limit, &(struct quota_conf){0});
    conf = (struct listener_conf){.name = "front",
                                  .addresses = &a,
                                  .n_addresses = 1,
                                  .service = LISTENER_ECHO,
                                  .backlog = 16,
                                  .reuseport = 1};
    before = process_descriptors();
    ck_assert_int_eq(loop_group_create(&boss, &group), 0);
    control = env.control = loop_runner_create();
    env.boss = boss;
    ck_assert_int_eq(listeners_create(&listeners, &env), 0);
}

static int prepare(struct listeners_change **change, unsigned n)
{
    const struct listeners_sources sources = {.list = &conf, .n = n, .accept_batch = 16};

    return listeners_prepare(listeners, &sources, change);
}

static void change_to(void *n)
{
    struct listeners_change *change;

    ck_assert_int_eq(prepare(&change, *(unsigned *)n), 0);
    listeners_commit(change);
}

/* With the listener, or without. */
static void configure(unsigned n)
{
    loop_runner_call(control, change_to, &n);
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
    loop_runner_stop(control);
    listeners_destroy(listeners);
    loop_group_destroy(boss);
    loop_runner_destroy(control);
    ck_assert_uint_eq(process_descriptors(), before);
    sock_unlink(&a);
}

/* What the store gives out. */
static void give(int fd)
{
    given[n_given++] = fd;
}

static int give_path(void)
{
    int fd;

    sockets_path(&a, "store");
    ck_assert_int_eq(sock_listen(&fd, &a, &shared), 0);
    give(fd);
    return fd;
}

static bool has_file(void)
{
    struct stat st;

    return lstat(a.u.un.sun_path, &st) == 0;
}

GROUP(listeners_store, setup, teardown);

TEST(listeners_store, clients_in_the_queue_of_an_inherited_socket_are_accepted)
{
    int client;

    give(sockets_listen(&a, 4));
    client = sockets_connect(&a);
    configure(1);
    ck_assert_uint_eq(n_given, 0);
    ck_assert_uint_eq(n_kept, 1);
    ck_assert_int_eq(listeners_start(listeners), 0);
    UNTIL(atomic_load(&accepted) == 1);
    close(client);
}

TEST(listeners_store, a_created_socket_is_kept)
{
    close(sockets_bound(&a));
    configure(1);
    ck_assert_uint_eq(n_kept, 1);
    configure(1);
    ck_assert_uint_eq(n_kept, 1); /* it is still the same */
    ck_assert_uint_eq(n_forgotten, 0);
}

TEST(listeners_store, all_inherited_sockets_of_an_address_are_used)
{
    a = sockets_address("127.0.0.1:1");
    for (int i = 0; i < 3; i++) {
        int fd;

        address_set_port(&a, i == 0 ? 0 : address_port(&a));
        ck_assert_int_eq(sock_listen(&fd, &a, &shared), 0);
        ck_assert_int_eq(sock_local(&a, fd), 0);
        give(fd);
    }
    conf.reuseport = 2;
    configure(1);
    ck_assert_uint_eq(listeners_sockets(listeners), 3);
    ck_assert_uint_eq(n_kept, 3);
}

/* Clients that come and go; one that is accepted is reset, perhaps before connect(2) returns. */
static void knock(unsigned n)
{
    while (n-- > 0) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void)connect(fd, &a.u.sa, a.len);
        close(fd);
    }
}

TEST(listeners_store, sockets_added_to_an_inherited_socket_get_clients_from_the_start)
{
    give(sockets_listen(&a, 64));
    conf.reuseport = 3;
    configure(1);
    knock(16);
    ck_assert_uint_eq(listeners_sockets(listeners), 1);
    ck_assert_uint_eq(n_kept, 1);
    ck_assert_int_eq(listeners_start(listeners), 0);
    knock(16);
    ck_assert_uint_eq(listeners_sockets(listeners), 3);
    ck_assert_uint_eq(n_kept, 3);
    UNTIL(atomic_load(&accepted) == 32);
}

TEST(listeners_store, failed_start_leaves_all_clients_on_the_inherited_socket)
{
    int clients[16], copy = sockets_listen(&a, 64), last;

    give(dup(copy));
    conf.reuseport = 3;
    configure(1);
    for (int i = 0; i < 16; i++)
        clients[i] = sockets_connect(&a);
    listeners_leave(listeners);
    ck_assert_uint_eq(atomic_load(&stopped), 1);
    for (int i = 0; i < 16; i++) {
        last = accept(copy, NULL, NULL);
        ck_assert_int_ge(last, 0);
        close(last);
        close(clients[i]);
    }
    close(copy);
}

/* As with one that belongs to another user. */
TEST(listeners_store, an_inherited_socket_serves_alone_if_no_second_socket_can_be_bound)
{
    int fd = sockets_listen(&a, 4);

    give(dup(fd));
    conf.reuseport = 2;
    if (geteuid() != 0) {
        close(fd);
        return;
    }
    ck_assert_int_eq(seteuid(65534), 0);
    configure(1);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_uint_eq(listeners_sockets(listeners), 1);
    EXPECT_LOG_LINES(": sockets: 1, reuseport = 2: cannot bind more: Address "
                     "already in use",
                     1);
    close(fd);
}

TEST(listeners_store, the_end_of_the_process_leaves_the_file_of_a_kept_socket)
{
    keeps = true;
    sockets_path(&a, "store");
    configure(1);
    ck_assert_int_eq(listeners_start(listeners), 0);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert(has_file());
    ck_assert_uint_eq(n_forgotten, 0);
}

TEST(listeners_store, the_end_of_the_process_removes_the_file_of_a_socket_not_kept)
{
    sockets_path(&a, "store");
    configure(1);
    ck_assert_int_eq(listeners_start(listeners), 0);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert(!has_file());
}

TEST(listeners_store, listener_that_was_not_started_leaves_the_file_of_its_inherited_socket)
{
    give_path();
    configure(1);
    listeners_stop(listeners);
    ck_assert(has_file());
}

/* `forget` says whose it is. */
TEST_EACH(listeners_store, a_removed_listener_is_removed_from_the_store_with_its_file, 2)
{
    forgets = _i == 1;
    keeps = true;
    give_path();
    configure(1);
    ck_assert_int_eq(listeners_start(listeners), 0);
    configure(0);
    ck_assert_uint_eq(n_forgotten, 1);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert_int_eq(has_file(), !forgets);
    configure(0);
    ck_assert_uint_eq(n_forgotten, 1);
}

TEST(listeners_store, a_cancelled_change_stores_nothing_and_leaves_the_inherited_file)
{
    struct listeners_change *change;

    give_path();
    ck_assert_int_eq(prepare(&change, 1), 0);
    listeners_cancel(change);
    ck_assert_uint_eq(n_kept, 0);
    ck_assert_uint_eq(n_forgotten, 0);
    ck_assert(has_file());
}

TEST(listeners_store, an_inherited_socket_that_cannot_be_configured_is_logged)
{
    struct listeners_change *change;

    give(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    a = sockets_address("127.0.0.1:1");
    ck_assert_int_eq(prepare(&change, 1), -EOPNOTSUPP);
    EXPECT_LOG_LINES("listen front: 127.0.0.1:1: cannot listen: ", 1);
}

/* ---- another process has the sockets, too ---- */

static void open_path(void)
{
    sockets_path(&a, "left");
    configure(1);
    ck_assert_int_eq(listeners_start(listeners), 0);
}

TEST(listeners_store, sockets_that_are_left_keep_their_file_and_their_queue)
{
    struct listeners_descriptor *list;
    unsigned n;
    int copy, client;

    open_path();
    ck_assert_int_eq(listeners_descriptors(listeners, &list, &n), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert(address_equal(&list[0].address, &a));
    copy = dup(list[0].fd);
    free(list);
    listeners_leave(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    client = sockets_connect(&a);
    ck_assert(has_file());
    listeners_leave(listeners);
    listeners_stop(listeners);
    end_boss();
    ck_assert_uint_eq(atomic_load(&accepted), 0);
    ck_assert_uint_eq(atomic_load(&stopped), 1);
    close(client);
    close(copy);
}

TEST(listeners_store, file_of_an_inherited_socket_is_removed_when_the_store_does_not_keep_it)
{
    give_path();
    configure(1);
    ck_assert_int_eq(listeners_start(listeners), 0);
    listeners_keep(listeners);
    ck_assert_uint_eq(n_kept, 2);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert(!has_file());
}

TEST(listeners_store, the_file_of_a_stored_socket_stays)
{
    open_path();
    keeps = true;
    listeners_keep(listeners);
    listeners_stop(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert(has_file());
}

/* Not its descriptor: the boss may have closed it. */
TEST_EACH(listeners_store, sockets_that_were_left_are_given_up_and_not_kept, 2)
{
    bool ours = _i == 1;

    open_path();
    n_kept = 0;
    forgets = ours;
    listeners_leave(listeners);
    UNTIL(atomic_load(&stopped) == 1);
    ck_assert(has_file());
    listeners_keep(listeners);
    ck_assert_uint_eq(n_kept, 0);
    ck_assert_uint_eq(n_forgotten, 1);
    ck_assert(has_file() == !ours);
}

/* ---- until it is replaced, another process has the sockets, too ---- */

static void take_over(void)
{
    ck_assert_int_eq(listeners_start(listeners), 0);
    listeners_keep(listeners);
}

TEST(listeners_store, sockets_of_another_process_are_configured_when_it_is_replaced)
{
    int copy = sockets_listen(&a, 64);

    give(dup(copy));
    store.shared = true;
    conf.reuseport = 3;
    conf.socket.nodelay = true;
    configure(1);
    ck_assert_int_eq(listeners_start(listeners), 0);
    ck_assert_int_eq(sockets_option(copy, SOL_SOCKET, SO_REUSEPORT), 0);
    ck_assert_int_eq(sockets_option(copy, IPPROTO_TCP, TCP_NODELAY), 0);
    ck_assert_uint_eq(listeners_sockets(listeners), 1);
    ck_assert_uint_eq(listeners_sockets_wanted(listeners), 3);
    listeners_keep(listeners);
    ck_assert_int_ne(sockets_option(copy, SOL_SOCKET, SO_REUSEPORT), 0);
    ck_assert_int_ne(sockets_option(copy, IPPROTO_TCP, TCP_NODELAY), 0);
    ck_assert_uint_eq(listeners_sockets(listeners), 3);
    knock(32);
    UNTIL(atomic_load(&accepted) == 32);
    close(copy);
}

static unsigned file_mode(void)
{
    struct stat st;

    ck_assert_int_eq(lstat(a.u.un.sun_path, &st), 0);
    return st.st_mode & ALLPERMS;
}

TEST(listeners_store, file_of_another_process_gets_its_mode_when_that_process_is_replaced)
{
    unsigned mode;

    give_path();
    mode = file_mode();
    store.shared = true;
    conf.unix_file = (struct sock_file){.set_mode = true, .mode = 0606};
    configure(1);
    ck_assert_uint_eq(file_mode(), mode);
    take_over();
    ck_assert_uint_eq(file_mode(), 0606);
}

TEST(listeners_store, inherited_socket_that_cannot_be_configured_at_a_take_over_is_logged)
{
    if (geteuid() != 0)
        return;
    give_path();
    store.shared = true;
    conf.unix_file = (struct sock_file){.set_uid = true, .uid = 65534};
    configure(1);
    ck_assert_int_eq(seteuid(65533), 0);
    take_over();
    ck_assert_int_eq(seteuid(0), 0);
    EXPECT_LOG_LINES("the inherited socket keeps its old options: ", 1);
    ck_assert_uint_eq(listeners_sockets(listeners), 1);
}

TEST(listeners_store, replacing_process_has_fewer_sockets_if_no_second_socket_can_be_bound)
{
    if (geteuid() != 0)
        return;
    give(sockets_listen(&a, 4));
    store.shared = true;
    conf.reuseport = 2;
    configure(1);
    ck_assert_int_eq(seteuid(65534), 0);
    take_over();
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_uint_eq(listeners_sockets(listeners), 1);
    EXPECT_LOG_LINES(": sockets: 1, reuseport = 2: cannot bind more: ", 1);
}
