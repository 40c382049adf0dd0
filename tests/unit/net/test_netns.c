/*
 * net/netns: which files are network namespaces, and where sockets are made. Without the permission
 * to make a namespace some cases do nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "net/netns.h"
#include "net/sock.h"
#include "support/fault.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"

#define OWN "/proc/thread-self/ns/net"

static unsigned before;
static int abroad; /* a namespace that this thread is not in; -1: not permitted */
static char path[64];

/* Make the namespace of ${path}, and return from it. */
static void setup(void)
{
    int home;

    before = process_descriptors();
    home = open(OWN, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(home, 0);
    abroad = -1;
    if (unshare(CLONE_NEWNET) == 0) {
        abroad = open(OWN, O_RDONLY | O_CLOEXEC);
        ck_assert_int_ge(abroad, 0);
        ck_assert_int_eq(setns(home, CLONE_NEWNET), 0);
        snprintf(path, sizeof(path), "/proc/self/fd/%d", abroad);
    }
    close(home);
}

static void teardown(void)
{
    if (abroad >= 0)
        close(abroad);
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(netns, setup, teardown);

TEST(netns, the_own_namespace_is_none)
{
    struct netns *ns;

    if (abroad < 0)
        return;
    ck_assert_int_eq(netns_open(&ns, "/proc/self/ns/net"), 0);
    ck_assert_ptr_null(ns);
}

TEST(netns, none_is_entered_left_and_released_without_effect)
{
    ck_assert_int_eq(netns_enter(NULL), 0);
    netns_leave(NULL);
    ck_assert_ptr_null(netns_hold(NULL));
    netns_release(NULL);
    ck_assert_uint_eq(netns_id(NULL), 0);
}

static const struct {
    const char *name;
    int error;
} others[] = {{"no-such-namespace", -ENOENT},
              {"/nowhere/net", -ENOENT},
              {"/dev/null", -EINVAL},
              {"/", -EINVAL},
              {"/proc/self/ns/uts", -EINVAL}};

TEST_EACH(netns, other_files_are_refused, ARRAY_LEN(others))
{
    struct netns *ns;

    ck_assert_int_eq(netns_open(&ns, others[_i].name), others[_i].error);
}

TEST(netns, a_socket_is_in_the_namespace_of_its_options)
{
    struct sock_options options = {.nodelay = true};
    struct netns *same;
    int there, here;

    if (abroad < 0)
        return;
    ck_assert_int_eq(netns_open(&options.netns, path), 0);
    ck_assert_int_eq(netns_open(&same, path), 0);
    ck_assert_uint_ne(netns_id(options.netns), 0);
    ck_assert_uint_eq(netns_id(same), netns_id(options.netns));
    netns_release(same);
    there = sock_options_open(&options, AF_INET);
    here = sock_options_open(&(struct sock_options){.nodelay = true}, AF_INET);
    ck_assert_uint_eq(netns_id_of_socket(there), netns_id(options.netns));
    ck_assert_uint_eq(netns_id_of_socket(here), 0);
    close(here);
    close(there);
    netns_release(options.netns);
}

TEST(netns, the_last_release_closes_the_namespace)
{
    struct netns *ns;
    unsigned open;

    if (abroad < 0)
        return;
    open = process_descriptors();
    ck_assert_int_eq(netns_open(&ns, path), 0);
    ck_assert_ptr_eq(netns_hold(ns), ns);
    netns_release(ns);
    ck_assert_uint_eq(process_descriptors(), open + 2);
    netns_release(ns);
    ck_assert_uint_eq(process_descriptors(), open);
}

TEST(netns, one_address_is_listened_on_in_two_namespaces)
{
    struct sock_listen_conf conf = {.backlog = 4};
    struct address a;
    int here = sockets_listen(&a, 4), there;

    if (abroad >= 0) {
        ck_assert_int_eq(netns_open(&conf.options.netns, path), 0);
        ck_assert_int_eq(sock_listen(&there, &a, &conf), 0);
        close(there);
        netns_release(conf.options.netns);
    }
    close(here);
}

static int attempt(void *cookie)
{
    int rc = netns_open(cookie, "no-such-namespace");

    return rc == -ENOENT ? 0 : rc;
}

TEST(netns, opening_without_memory_fails)
{
    struct netns *ns;

    ck_assert_uint_eq(fault_each_allocation(attempt, &ns), 2);
}

TEST(netns, addresses_of_two_namespaces_have_nothing_to_do_with_each_other)
{
    struct address here = sockets_address("127.0.0.1:7"), there = here;
    struct address all = sockets_address("0.0.0.0:7");

    address_set_netns(&there, 5);
    ck_assert(!address_equal(&here, &there));
    ck_assert(!address_conflicts(&all, &there, false));
    ck_assert(!address_covers(&all, &there));
    address_set_netns(&all, 5);
    ck_assert(address_conflicts(&all, &there, false));
    ck_assert(address_covers(&all, &there));
}

TEST(netns, the_file_of_a_unix_socket_is_in_no_namespace)
{
    struct address file = sockets_address("/a"), same = file;
    struct address name = sockets_address("@a"), there = name;

    address_set_netns(&file, 5);
    ck_assert(address_equal(&file, &same));
    address_set_netns(&name, 5);
    ck_assert(!address_equal(&name, &there));
}
