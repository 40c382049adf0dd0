/* net/sock: unix sockets, their files and the owners of these. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/sock.h"
#include "support/listen_socket.h"
#include "support/sockets.h"
#include "support/suite.h"

GROUP(sock, listen_socket_setup, listen_socket_teardown);

TEST(sock, an_inherited_unix_socket_is_given_to_its_user_and_group)
{
    struct sock_listen_conf with = listen_socket.conf;
    struct stat st;
    int fd;

    sockets_path(&listen_socket.a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &with), 0);
    with.file = (struct sock_file){.set_mode = true, .mode = 0640};
    ck_assert_int_eq(sock_inherit(fd, &listen_socket.a, &with), 0);
    ck_assert_int_eq(stat(listen_socket.a.u.un.sun_path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    close(fd);
    sock_unlink(&listen_socket.a);
}

/* Only root or its owner may change it. */
TEST(sock, file_of_another_user_is_accepted_only_with_the_configured_mode_and_owner)
{
    struct sock_listen_conf with = listen_socket.conf;
    int fd;

    if (geteuid() != 0)
        return;
    sockets_path(&listen_socket.a, "sock");
    with.file = (struct sock_file){.set_mode = true, .set_uid = true, .mode = 0660};
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &with), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(sock_inherit(fd, &listen_socket.a, &with), 0);
    with.file.mode = 0666;
    ck_assert_int_eq(sock_inherit(fd, &listen_socket.a, &with), -EPERM);
    with.file = (struct sock_file){.set_uid = true, .uid = 65534};
    ck_assert_int_eq(sock_inherit(fd, &listen_socket.a, &with), -EPERM);
    ck_assert_int_eq(seteuid(0), 0);
    close(fd);
    sock_unlink(&listen_socket.a);
}

/* ---- unix sockets ---- */

TEST(sock, unix_socket_has_a_file_until_it_is_unlinked)
{
    int fd;
    struct stat st;

    sockets_path(&listen_socket.a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), 0);
    ck_assert_int_eq(lstat(listen_socket.a.u.un.sun_path, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    close(sockets_connect(&listen_socket.a));
    close(fd);
    sock_unlink(&listen_socket.a);
    ck_assert_int_eq(lstat(listen_socket.a.u.un.sun_path, &st), -1);
    sock_unlink(&listen_socket.a);
}

/* With any umask. */
TEST(sock, a_unix_socket_is_given_to_its_user_and_group)
{
    static const mode_t umasks[] = {0, 022, 077, 0777};
    struct sock_listen_conf with = listen_socket.conf;
    mode_t usual = umask(0);
    struct stat st;
    int fd;

    listen_socket_parse("/tmp/reactord-test-sock-file");
    with.file = (struct sock_file){.set_mode = true, .mode = 0660};
    if (geteuid() == 0) {
        with.file.set_uid = with.file.set_gid = true;
        with.file.uid = 1234;
        with.file.gid = 4321;
    }
    for (size_t i = 0; i < ARRAY_LEN(umasks); i++) {
        umask(umasks[i]);
        ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &with), 0);
        ck_assert_int_eq(stat(listen_socket.a.u.un.sun_path, &st), 0);
        ck_assert_uint_eq(st.st_mode, S_IFSOCK | 0660);
        ck_assert(geteuid() != 0 || (st.st_uid == 1234 && st.st_gid == 4321));
        close(fd);
        sock_unlink(&listen_socket.a);
    }
    umask(usual);
}

/* The socket has the mode before there is a file: at no moment may more connect. */
TEST(sock, the_mode_of_a_unix_socket_is_set_before_there_is_a_file)
{
    struct sock_listen_conf with = listen_socket.conf;
    struct stat st;
    int fd;

    sockets_path(&listen_socket.a, "sock");
    with.file = (struct sock_file){.set_mode = true, .mode = 0640};
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &with), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    close(fd);
    sock_unlink(&listen_socket.a);
}

TEST(sock, a_unix_socket_that_cannot_be_given_away_is_not_left)
{
    struct sock_listen_conf with = listen_socket.conf;
    struct stat st;
    int fd;

    if (geteuid() != 0)
        return;
    sockets_path(&listen_socket.a, "sock");
    with.file = (struct sock_file){.set_uid = true, .uid = 0};
    ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &with), -EPERM);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(lstat(listen_socket.a.u.un.sun_path, &st), -1);
}

TEST(sock, stale_unix_socket_file_is_replaced)
{
    int fd;

    sockets_path(&listen_socket.a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), 0);
    close(fd);
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), 0);
    close(sockets_connect(&listen_socket.a));
    close(fd);
    sock_unlink(&listen_socket.a);
}

TEST(sock, a_unix_socket_that_answers_is_in_use)
{
    int fd;

    sockets_path(&listen_socket.a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), 0);
    listen_socket_expect_listen(-EADDRINUSE);
    close(sockets_connect(&listen_socket.a)); /* and still works */
    close(fd);
    sock_unlink(&listen_socket.a);
}

TEST(sock, unix_socket_with_a_full_backlog_is_in_use)
{
    struct sock_listen_conf narrow = {.backlog = 0};
    int fd, client;

    sockets_path(&listen_socket.a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &narrow), 0);
    client = sockets_connect(&listen_socket.a);
    listen_socket_expect_listen(-EADDRINUSE);
    close(client);
    close(fd);
    sock_unlink(&listen_socket.a);
}

TEST(sock, path_of_another_kind_of_file_is_left_alone)
{
    FILE *file;
    struct stat st;

    sockets_path(&listen_socket.a, "file");
    file = fopen(listen_socket.a.u.un.sun_path, "w");
    fclose(file);
    listen_socket_expect_listen(-ENOTSOCK);
    ck_assert_int_eq(lstat(listen_socket.a.u.un.sun_path, &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(unlink(listen_socket.a.u.un.sun_path), 0);
}

TEST(sock, path_in_a_missing_directory_is_refused)
{
    sockets_path(&listen_socket.a, "none/sock");
    listen_socket_expect_listen(-ENOENT);
}

TEST(sock, an_abstract_name_needs_no_file)
{
    int fd;

    listen_socket_parse("@reactord-test-sock");
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), 0);
    listen_socket_expect_listen(-EADDRINUSE);
    close(sockets_connect(&listen_socket.a));
    sock_unlink(&listen_socket.a);
    close(fd);
}
