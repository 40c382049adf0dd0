/*
 * listen/socket_store: a socket is taken or created; without a store all is as if it were empty.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "listen/socket_store.h"
#include "net/sock.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"

static const struct sock_listen_conf conf = {.backlog = 4};
static struct address a;
static int given, holder, kept;
static bool forgets;
static unsigned before;

static unsigned on_count(void *cookie, const struct address *of)
{
    ck_assert_ptr_eq(cookie, &given);
    ck_assert(address_equal(of, &a));
    return 3;
}

static int on_take(void *cookie, const struct address *of)
{
    ck_assert_ptr_eq(cookie, &given);
    ck_assert(address_equal(of, &a));
    return given;
}

static bool on_keep(void *cookie, const struct address *of, int fd)
{
    ck_assert_ptr_eq(cookie, &given);
    ck_assert(address_equal(of, &a));
    kept = fd;
    return true;
}

static bool on_forget(void *cookie, const struct address *of)
{
    ck_assert_ptr_eq(cookie, &given);
    ck_assert(address_equal(of, &a));
    return forgets;
}

static const struct socket_store store = {
    .count = on_count, .take = on_take, .keep = on_keep, .forget = on_forget, .cookie = &given};
static const struct socket_store empty;

static void setup(void)
{
    before = process_descriptors();
    holder = sockets_bound(&a);
    given = kept = -1;
}

static void teardown(void)
{
    close(holder);
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(socket_store, setup, teardown);

TEST(socket_store, stored_socket_is_taken_and_configured)
{
    int fd;

    ck_assert_int_eq(listen(holder, 4), 0);
    given = dup(holder);
    ck_assert(socket_store_open(&store, &fd, &a, &conf));
    ck_assert_int_eq(fd, given);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    close(fd);
}

TEST(socket_store, stored_socket_that_cannot_be_configured_is_closed)
{
    int fd;

    given = open("/dev/null", O_RDONLY);
    ck_assert(socket_store_open(&store, &fd, &a, &conf));
    ck_assert_int_eq(fd, -ENOTSOCK);
}

TEST(socket_store, socket_missing_in_the_store_is_created)
{
    int fd;

    ck_assert(!socket_store_open(&store, &fd, &a, &conf));
    close(sockets_connect(&a));
    close(fd);
}

TEST(socket_store, socket_that_cannot_be_created_is_reported)
{
    int fd;

    ck_assert_int_eq(listen(holder, 4), 0);
    ck_assert(!socket_store_open(&store, &fd, &a, &conf));
    ck_assert_int_eq(fd, -EADDRINUSE);
}

TEST(socket_store, kept_and_forgotten_sockets_are_reported_to_the_store)
{
    ck_assert_uint_eq(socket_store_count(&store, &a), 3);
    ck_assert(socket_store_keep(&store, &a, 7));
    ck_assert_int_eq(kept, 7);
    ck_assert(!socket_store_forget(&store, &a));
    forgets = true;
    ck_assert(socket_store_forget(&store, &a));
}

TEST(socket_store, without_a_store_no_socket_is_taken_or_kept)
{
    static const struct socket_store *const none[] = {NULL, &empty};
    int fd;

    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        ck_assert_uint_eq(socket_store_count(none[i], &a), 0);
        ck_assert(!socket_store_open(none[i], &fd, &a, &conf));
        ck_assert(!socket_store_keep(none[i], &a, fd));
        ck_assert(socket_store_forget(none[i], &a));
        close(fd);
    }
}
