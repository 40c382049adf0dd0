/* upgrade/fd_store: which sockets the service manager keeps, and who gets what it hands over. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "upgrade/fd_store.h"
#include "net/sock.h"
#include "support/fault.h"
#include "support/handed.h"
#include "support/log_lines.h"
#include "support/manager.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"

static struct fd_store *store;
static struct socket_store ops;
static struct address a;
static unsigned before;

static void setup(void)
{
    manager_open();
    handed_open();
    ck_assert_int_eq(setenv("FDSTORE", "16", 1), 0);
    log_lines_capture(LOG_LEVEL_DEBUG);
    before = process_descriptors();
}

static void teardown(void)
{
    fd_store_close(store);
    ck_assert_uint_eq(process_descriptors(), before);
    manager_close();
}

static void open_store(void)
{
    ck_assert_int_eq(fd_store_open(&store), 0);
    ops = fd_store_ops(store);
}

static const char *name_of(const struct address *of)
{
    static char name[FD_STORE_NAME_BYTES];

    ck_assert_int_eq(fd_store_name(name, sizeof(name), of), 0);
    return name;
}

/* A socket of the store, or of a unit. */
static int hand_over(const char *name)
{
    int fd = sockets_listen(&a, 4);

    return handed_add(fd, name ? name : name_of(&a));
}

static void expect_message(const char *assignment)
{
    char expected[320];

    snprintf(expected, sizeof(expected), "%s=1\nFDNAME=%s\n", assignment, name_of(&a));
    ck_assert_str_eq(manager_received(), expected);
}

GROUP(fd_store, setup, teardown);

TEST(fd_store, name_is_the_address_in_characters_that_systemd_allows)
{
    char name[FD_STORE_NAME_BYTES];

    a = sockets_address("127.0.0.1:80");
    ck_assert_str_eq(name_of(&a), "127.0.0.1%3A80");
    a = sockets_address("[::1]:80");
    ck_assert_str_eq(name_of(&a), "[%3A%3A1]%3A80");
    a = sockets_address("@front");
    ck_assert_str_eq(name_of(&a), "@front");
    a = sockets_address("/run/caf\xc3\xa9 100%.sock");
    ck_assert_str_eq(name_of(&a), "/run/caf%C3%A9%20100%25.sock");
    a = sockets_address("127.0.0.1:80");
    address_set_netns(&a, UINT32_MAX);
    ck_assert_str_eq(name_of(&a), "127.0.0.1%3A80#4294967295");
    a = sockets_address("/123");
    ck_assert_int_eq(fd_store_name(name, 5, &a), 0);
    ck_assert_int_eq(fd_store_name(name, 4, &a), -ENAMETOOLONG);
}

TEST(fd_store, a_socket_is_stored_and_removed_by_its_name)
{
    int fd = sockets_listen(&a, 4);

    open_store();
    ck_assert(ops.keep(ops.cookie, &a, fd));
    expect_message("FDSTORE");
    ck_assert(ops.forget(ops.cookie, &a));
    expect_message("FDSTOREREMOVE");
    close(fd);
}

static const char *const no_stores[] = {NULL, "", "0", "x"};

TEST_EACH(fd_store, without_a_store_no_message_is_sent, ARRAY_LEN(no_stores))
{
    int fd = sockets_listen(&a, 4);

    ck_assert_int_eq(no_stores[_i] ? setenv("FDSTORE", no_stores[_i], 1) : unsetenv("FDSTORE"), 0);
    open_store();
    ck_assert(!ops.keep(ops.cookie, &a, fd));
    ck_assert(ops.forget(ops.cookie, &a));
    ck_assert_str_eq(manager_received(), "");
    close(fd);
}

TEST(fd_store, without_a_service_manager_no_socket_is_kept)
{
    int fd = sockets_listen(&a, 4);

    ck_assert_int_eq(unsetenv("NOTIFY_SOCKET"), 0);
    open_store();
    ck_assert(!ops.keep(ops.cookie, &a, fd));
    close(fd);
}

TEST(fd_store, lost_service_manager_is_logged)
{
    int fd = sockets_listen(&a, 4);

    open_store();
    manager_close();
    before--;
    ck_assert(!ops.keep(ops.cookie, &a, fd));
    EXPECT_LOG_LINES("systemd does not store the socket: Connection refused; a "
                     "restart closes it",
                     1);
    close(fd);
}

TEST(fd_store, a_stored_socket_is_taken_once_and_stored_again)
{
    int fd = hand_over(NULL);

    open_store();
    ck_assert_uint_eq(ops.count(ops.cookie, &a), 1);
    ck_assert_int_eq(ops.take(ops.cookie, &a), fd);
    ck_assert_uint_eq(ops.count(ops.cookie, &a), 0);
    ck_assert_int_eq(ops.take(ops.cookie, &a), -1);
    EXPECT_LOG_LINES(": inherited as 127.0.0.1%3A", 1);
    ck_assert(ops.keep(ops.cookie, &a, fd));
    expect_message("FDSTORE");
    fd_store_close_unwanted(store);
    ck_assert_str_eq(manager_received(), "");
    close(fd);
}

TEST(fd_store, socket_of_another_address_is_not_given)
{
    struct address other = sockets_address("127.0.0.1:1");

    hand_over(NULL);
    open_store();
    ck_assert_int_eq(ops.take(ops.cookie, &other), -1);
}

/* systemd keeps it as long as the unit runs: it needs no copy, and its file is the unit's. */
TEST(fd_store, a_socket_of_a_unit_is_kept_without_being_stored)
{
    int fd = hand_over("reactord.socket");

    open_store();
    ck_assert_int_eq(ops.take(ops.cookie, &a), fd);
    ck_assert(ops.keep(ops.cookie, &a, fd));
    ck_assert(!ops.forget(ops.cookie, &a));
    ck_assert_str_eq(manager_received(), "");
    close(fd);
}

TEST(fd_store, sockets_without_a_listener_are_closed_and_removed)
{
    hand_over(NULL);
    open_store();
    fd_store_close_unwanted(store);
    ck_assert_uint_eq(process_descriptors(), before);
    EXPECT_LOG_LINES(": no listener has this address; closed", 1);
    ck_assert_int_eq(ops.take(ops.cookie, &a), -1);
    ck_assert_str_eq(manager_received(), "");
    fd_store_give_up(store);
    expect_message("FDSTOREREMOVE");
    fd_store_give_up(store);
    ck_assert_str_eq(manager_received(), "");
}

static const struct {
    const char *given; /* NULL: under its address */
    bool stays;
} files[] = {{NULL, false}, {"reactord-listen", false}, {"reactord.socket", true}};

TEST_EACH(fd_store, file_of_a_removed_socket_is_unlinked_if_it_is_ours, ARRAY_LEN(files))
{
    const struct sock_listen_conf conf = {.backlog = 4};
    int fd;

    sockets_path(&a, "given-up");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    handed_add(fd, files[_i].given ? files[_i].given : name_of(&a));
    open_store();
    fd_store_close_unwanted(store);
    ck_assert_int_eq(access(a.u.un.sun_path, F_OK), 0);
    fd_store_give_up(store);
    ck_assert_int_eq(access(a.u.un.sun_path, F_OK), files[_i].stays ? 0 : -1);
    sock_unlink(&a);
}

TEST(fd_store, taken_socket_is_not_removed)
{
    int fd = hand_over(NULL);

    open_store();
    ck_assert_int_eq(ops.take(ops.cookie, &a), fd);
    fd_store_close_unwanted(store);
    fd_store_give_up(store);
    ck_assert_str_eq(manager_received(), "");
    close(fd);
}

TEST(fd_store, unusable_socket_is_removed)
{
    int fd = sockets_bound(&a);

    handed_add(fd, name_of(&a));
    open_store();
    fd_store_give_up(store);
    expect_message("FDSTOREREMOVE");
}

TEST(fd_store, closing_the_store_closes_sockets_that_were_not_taken)
{
    hand_over(NULL);
    open_store();
    ck_assert_uint_eq(process_descriptors(), before + 1);
}

static int attempt(void *cookie)
{
    (void)cookie;
    return fd_store_open(&store);
}

TEST(fd_store, creating_without_memory_fails)
{
    ck_assert_uint_eq(fault_each_allocation(attempt, NULL), 1);
}

static const struct {
    const char *given; /* NULL: under its address */
    bool enabled;
    const char *expected; /* likewise */
} passed_on[] = {
    {"reactord.socket", true, "reactord.socket"},
    {"reactord.socket", false, "reactord.socket"},
    {NULL, true, NULL},
    {"reactord-listen", true, NULL},
    {"reactord-listen", false, "reactord-listen"},
};

TEST_EACH(fd_store, socket_is_passed_on_under_its_name, ARRAY_LEN(passed_on))
{
    const char *expected = passed_on[_i].expected;
    char name[FD_STORE_NAME_BYTES];

    if (!passed_on[_i].enabled)
        ck_assert_int_eq(unsetenv("FDSTORE"), 0);
    hand_over(passed_on[_i].given);
    open_store();
    fd_store_hand_over_name(store, &a, name);
    ck_assert_str_eq(name, expected ? expected : name_of(&a));
}

TEST(fd_store, socket_of_the_previous_process_is_kept_as_our_own)
{
    int fd = hand_over("reactord-listen");

    open_store();
    ck_assert_int_eq(ops.take(ops.cookie, &a), fd);
    ck_assert(ops.keep(ops.cookie, &a, fd));
    expect_message("FDSTORE");
    close(fd);
}
