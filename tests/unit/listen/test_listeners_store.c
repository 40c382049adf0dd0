/* listen/listeners with a store: what they take, what they have kept, what becomes of files. */
#include <errno.h>
#include <unistd.h>

#include "listen/listeners.h"
#include "net/sock.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/stored.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(listeners_store, stored_setup, stored_teardown);

TEST(listeners_store, clients_in_the_queue_of_an_inherited_socket_are_accepted)
{
    int client;

    stored_give(sockets_listen(&stored.a, 4));
    client = sockets_connect(&stored.a);
    stored_configure(1);
    ck_assert_uint_eq(stored.n_given, 0);
    ck_assert_uint_eq(stored.n_kept, 1);
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
    UNTIL(atomic_load(&stored.accepted) == 1);
    close(client);
}

TEST(listeners_store, a_created_socket_is_kept)
{
    close(sockets_bound(&stored.a));
    stored_configure(1);
    ck_assert_uint_eq(stored.n_kept, 1);
    stored_configure(1);
    ck_assert_uint_eq(stored.n_kept, 1); /* it is still the same */
    ck_assert_uint_eq(stored.n_forgotten, 0);
}

TEST(listeners_store, all_inherited_sockets_of_an_address_are_used)
{
    stored.a = sockets_address("127.0.0.1:1");
    for (int i = 0; i < 3; i++) {
        int fd;

        address_set_port(&stored.a, i == 0 ? 0 : address_port(&stored.a));
        ck_assert_int_eq(sock_listen(&fd, &stored.a, &stored.shared), 0);
        ck_assert_int_eq(sock_local(&stored.a, fd), 0);
        stored_give(fd);
    }
    stored.conf.reuseport = 2;
    stored_configure(1);
    ck_assert_uint_eq(listeners_sockets(stored.listeners), 3);
    ck_assert_uint_eq(stored.n_kept, 3);
}

TEST(listeners_store, sockets_added_to_an_inherited_socket_get_clients_from_the_start)
{
    stored_give(sockets_listen(&stored.a, 64));
    stored.conf.reuseport = 3;
    stored_configure(1);
    stored_knock(16);
    ck_assert_uint_eq(listeners_sockets(stored.listeners), 1);
    ck_assert_uint_eq(stored.n_kept, 1);
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
    stored_knock(16);
    ck_assert_uint_eq(listeners_sockets(stored.listeners), 3);
    ck_assert_uint_eq(stored.n_kept, 3);
    UNTIL(atomic_load(&stored.accepted) == 32);
}

TEST(listeners_store, failed_start_leaves_all_clients_on_the_inherited_socket)
{
    int clients[16], copy = sockets_listen(&stored.a, 64), last;

    stored_give(dup(copy));
    stored.conf.reuseport = 3;
    stored_configure(1);
    for (int i = 0; i < 16; i++)
        clients[i] = sockets_connect(&stored.a);
    listeners_leave(stored.listeners);
    ck_assert_uint_eq(atomic_load(&stored.stopped), 1);
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
    int fd = sockets_listen(&stored.a, 4);

    stored_give(dup(fd));
    stored.conf.reuseport = 2;
    if (geteuid() != 0) {
        close(fd);
        return;
    }
    ck_assert_int_eq(seteuid(65534), 0);
    stored_configure(1);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_uint_eq(listeners_sockets(stored.listeners), 1);
    EXPECT_LOG_LINES(": sockets: 1, reuseport = 2: cannot bind more: Address "
                     "already in use",
                     1);
    close(fd);
}

TEST(listeners_store, the_end_of_the_process_leaves_the_file_of_a_kept_socket)
{
    stored.keeps = true;
    sockets_path(&stored.a, "store");
    stored_configure(1);
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
    listeners_stop(stored.listeners);
    UNTIL(atomic_load(&stored.stopped) == 1);
    ck_assert(stored_has_file());
    ck_assert_uint_eq(stored.n_forgotten, 0);
}

TEST(listeners_store, the_end_of_the_process_removes_the_file_of_a_socket_not_kept)
{
    sockets_path(&stored.a, "store");
    stored_configure(1);
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
    listeners_stop(stored.listeners);
    UNTIL(atomic_load(&stored.stopped) == 1);
    ck_assert(!stored_has_file());
}

TEST(listeners_store, listener_that_was_not_started_leaves_the_file_of_its_inherited_socket)
{
    stored_give_path();
    stored_configure(1);
    listeners_stop(stored.listeners);
    ck_assert(stored_has_file());
}

/* `forget` says whose it is. */
TEST_EACH(listeners_store, a_removed_listener_is_removed_from_the_store_with_its_file, 2)
{
    stored.forgets = _i == 1;
    stored.keeps = true;
    stored_give_path();
    stored_configure(1);
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
    stored_configure(0);
    ck_assert_uint_eq(stored.n_forgotten, 1);
    UNTIL(atomic_load(&stored.stopped) == 1);
    ck_assert_int_eq(stored_has_file(), !stored.forgets);
    stored_configure(0);
    ck_assert_uint_eq(stored.n_forgotten, 1);
}

TEST(listeners_store, a_cancelled_change_stores_nothing_and_leaves_the_inherited_file)
{
    struct listeners_change *change;

    stored_give_path();
    ck_assert_int_eq(stored_prepare(&change, 1), 0);
    listeners_cancel(change);
    ck_assert_uint_eq(stored.n_kept, 0);
    ck_assert_uint_eq(stored.n_forgotten, 0);
    ck_assert(stored_has_file());
}

TEST(listeners_store, an_inherited_socket_that_cannot_be_configured_is_logged)
{
    struct listeners_change *change;

    stored_give(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    stored.a = sockets_address("127.0.0.1:1");
    ck_assert_int_eq(stored_prepare(&change, 1), -EOPNOTSUPP);
    EXPECT_LOG_LINES("listen front: 127.0.0.1:1: cannot listen: ", 1);
}

TEST(listeners_store, file_of_an_inherited_socket_is_removed_when_the_store_does_not_keep_it)
{
    stored_give_path();
    stored_configure(1);
    ck_assert_int_eq(listeners_start(stored.listeners), 0);
    listeners_keep(stored.listeners);
    ck_assert_uint_eq(stored.n_kept, 2);
    listeners_stop(stored.listeners);
    UNTIL(atomic_load(&stored.stopped) == 1);
    ck_assert(!stored_has_file());
}

TEST(listeners_store, the_file_of_a_stored_socket_stays)
{
    stored_open_path();
    stored.keeps = true;
    listeners_keep(stored.listeners);
    listeners_stop(stored.listeners);
    UNTIL(atomic_load(&stored.stopped) == 1);
    ck_assert(stored_has_file());
}
