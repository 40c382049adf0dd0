/* listen/listeners with a store: the sockets of a process that is replaced. */
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "listen/listeners.h"
#include "net/sock.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/stored.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(listeners_store, stored_setup, stored_teardown);

TEST(listeners_store, sockets_that_are_left_keep_their_file_and_their_queue)
{
    struct listeners_descriptor *list;
    unsigned n;
    int copy, client;

    stored_open_path();
    ck_assert_int_eq(listeners_descriptors(stored.listeners, &list, &n), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert(address_equal(&list[0].address, &stored.a));
    copy = dup(list[0].fd);
    free(list);
    listeners_leave(stored.listeners);
    UNTIL(atomic_load(&stored.stopped) == 1);
    client = sockets_connect(&stored.a);
    ck_assert(stored_has_file());
    listeners_leave(stored.listeners);
    listeners_stop(stored.listeners);
    stored_end_boss();
    ck_assert_uint_eq(atomic_load(&stored.accepted), 0);
    ck_assert_uint_eq(atomic_load(&stored.stopped), 1);
    close(client);
    close(copy);
}

/* Not its descriptor: the boss may have closed it. */
TEST_EACH(listeners_store, sockets_that_were_left_are_given_up_and_not_kept, 2)
{
    bool ours = _i == 1;

    stored_open_path();
    stored.n_kept = 0;
    stored.forgets = ours;
    listeners_leave(stored.listeners);
    UNTIL(atomic_load(&stored.stopped) == 1);
    ck_assert(stored_has_file());
    listeners_keep(stored.listeners);
    ck_assert_uint_eq(stored.n_kept, 0);
    ck_assert_uint_eq(stored.n_forgotten, 1);
    ck_assert(stored_has_file() == !ours);
}

/* ---- until it is replaced, another process has the sockets, too ---- */

static void take_over(void)
{
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
    listeners_keep(stored.listeners);
}

TEST(listeners_store, sockets_of_another_process_are_configured_when_it_is_replaced)
{
    int copy = sockets_listen(&stored.a, 64);

    stored_give(dup(copy));
    stored.store.shared = true;
    stored.conf.reuseport = 3;
    stored.conf.socket.nodelay = true;
    stored_configure(1);
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
    ck_assert_int_eq(sockets_option(copy, SOL_SOCKET, SO_REUSEPORT), 0);
    ck_assert_int_eq(sockets_option(copy, IPPROTO_TCP, TCP_NODELAY), 0);
    ck_assert_uint_eq(listeners_sockets(stored.listeners), 1);
    ck_assert_uint_eq(listeners_sockets_wanted(stored.listeners), 3);
    listeners_keep(stored.listeners);
    ck_assert_int_ne(sockets_option(copy, SOL_SOCKET, SO_REUSEPORT), 0);
    ck_assert_int_ne(sockets_option(copy, IPPROTO_TCP, TCP_NODELAY), 0);
    ck_assert_uint_eq(listeners_sockets(stored.listeners), 3);
    stored_knock(32);
    UNTIL(atomic_load(&stored.accepted) == 32);
    close(copy);
}

static unsigned file_mode(void)
{
    struct stat st;

    ck_assert_int_eq(lstat(stored.a.u.un.sun_path, &st), 0);
    return st.st_mode & ALLPERMS;
}

TEST(listeners_store, file_of_another_process_gets_its_mode_when_that_process_is_replaced)
{
    unsigned mode;

    stored_give_path();
    mode = file_mode();
    stored.store.shared = true;
    stored.conf.unix_file = (struct sock_file){.set_mode = true, .mode = 0606};
    stored_configure(1);
    ck_assert_uint_eq(file_mode(), mode);
    take_over();
    ck_assert_uint_eq(file_mode(), 0606);
}

TEST(listeners_store, inherited_socket_that_cannot_be_configured_at_a_take_over_is_logged)
{
    if (geteuid() != 0)
        return;
    stored_give_path();
    stored.store.shared = true;
    stored.conf.unix_file = (struct sock_file){.set_uid = true, .uid = 65534};
    stored_configure(1);
    ck_assert_int_eq(seteuid(65533), 0);
    take_over();
    ck_assert_int_eq(seteuid(0), 0);
    EXPECT_LOG_LINES("the inherited socket keeps its old options: ", 1);
    ck_assert_uint_eq(listeners_sockets(stored.listeners), 1);
}

TEST(listeners_store, replacing_process_has_fewer_sockets_if_no_second_socket_can_be_bound)
{
    if (geteuid() != 0)
        return;
    stored_give(sockets_listen(&stored.a, 4));
    stored.store.shared = true;
    stored.conf.reuseport = 2;
    stored_configure(1);
    ck_assert_int_eq(seteuid(65534), 0);
    take_over();
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_uint_eq(listeners_sockets(stored.listeners), 1);
    EXPECT_LOG_LINES(": sockets: 1, reuseport = 2: cannot bind more: ", 1);
}
