/* net/address: what can be written, what cannot, and what reaches what. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/address.h"
#include "net/sock.h"
#include "support/sockets.h"
#include "support/suite.h"

static const struct {
    const char *word;
    const char *text; /* NULL: as the word */
} good[] = {
    {"127.0.0.1:7", NULL},
    {"0.0.0.0:65535", NULL},
    {"[::1]:7", NULL},
    {"[::]:1", NULL},
    {"[0:0:0:0:0:0:0:1]:7", "[::1]:7"},
    {"[2001:DB8::A]:443", "[2001:db8::a]:443"},
    {"[fe80::1%lo]:7", NULL},
    {"[fe80::1%1]:7", "[fe80::1%lo]:7"},
    {"[fe80::1%4000000000]:7", NULL},
    {"[::ffff:127.0.0.1]:7", "127.0.0.1:7"},
    {"/run/x.sock", NULL},
    {"/run/with blank", NULL},
    {"@abstract", NULL},
    {"@a b", NULL},
    {"abns@padded", NULL},
};

GROUP(words, NULL, NULL);

TEST_EACH(words, parsed_address_is_formatted_as_the_same_text, ARRAY_LEN(good))
{
    struct address a = sockets_address(good[_i].word), again;
    char text[ADDRESS_TEXT_BYTES];

    ck_assert_str_eq(address_format(text, sizeof(text), &a),
                     good[_i].text != NULL ? good[_i].text : good[_i].word);
    again = sockets_address(text);
    ck_assert(address_equal(&a, &again));
    ck_assert_int_eq(a.len, again.len);
}

TEST(words, abns_name_is_padded_to_the_whole_path_and_differs_from_the_short_name)
{
    struct address plain = sockets_address("@x"), padded = sockets_address("abns@x");

    ck_assert(!address_equal(&plain, &padded));
    ck_assert_uint_eq(padded.len, sizeof(struct sockaddr_un));
    ck_assert_int_eq(memcmp(padded.u.un.sun_path, "\0x\0\0", 4), 0);
}

static const struct {
    const char *word;
    int rc;
} bad[] = {
    {"abns@", -EINVAL},
    {"abns@1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"
     "2345678901234567",
     -ENAMETOOLONG},
    {"", -EINVAL},
    {":", -EINVAL},
    {":7", -EINVAL},
    {"127.0.0.1", -EINVAL},
    {"127.0.0.1:", -EINVAL},
    {"127.0.0.1:x", -EINVAL},
    {"127.0.0.1:7 ", -EINVAL},
    {" 127.0.0.1:7", -EINVAL},
    {"127.0.0.1:+7", -EINVAL},
    {"127.0.0.1:07", -EINVAL},
    {"127.0.0.1:0", -ERANGE},
    {"127.0.0.1:65536", -ERANGE},
    {"127.0.0.1:99999999999999999999999", -ERANGE},
    {"127.1:7", -EINVAL},
    {"127.0.0.256:7", -EINVAL},
    {"010.0.0.1:7", -EINVAL},
    {"0x7f000001:7", -EINVAL},
    {"2130706433:7", -EINVAL},
    {"1.2.3:7", -EINVAL},
    {"1.2.3.4.:7", -EINVAL},
    {"[::1]", -EINVAL},
    {"[::1]7", -EINVAL},
    {"::1:7", -EINVAL},
    {"[::1:7", -EINVAL},
    {"[]:7", -EINVAL},
    {"[:7", -EINVAL},
    {"[127.0.0.1]:7", -EINVAL},
    {"[::1%lo]:7", -EINVAL},
    {"[fe80::1%nosuch0]:7", -EINVAL},
    {"[fe80::1%]:7", -EINVAL},
    {"[fe80::1%0]:7", -EINVAL},
    {"*", -EINVAL},
    {"*:0", -ERANGE},
    {"**:7", -EINVAL},
    {"run/x.sock", -EINVAL},
    {"@", -EINVAL},
    {"a b:7", -EINVAL},
    {"-a:7", -EINVAL},
    {".a:7", -EINVAL},
    {"a..b:7", -EINVAL},
    {"a..:7", -EINVAL},
    {".:7", -EINVAL},
    {"a-:7", -EINVAL},
    {"a.-b:7", -EINVAL},
    {"a-.b:7", -EINVAL},
    {"a.b-.:7", -EINVAL},
    {"a/b:7", -EINVAL},
    {"a.7:7", -EINVAL},
    {"a.0x7:7", -EINVAL},
    {"db.example.com:0", -ERANGE},
    {"db.example.com:65536", -ERANGE},
    {"db.example.com:", -EINVAL},
    {"db.example.com", -EINVAL},
    {"localhost:7", -ENOENT},
    {"a-b.example.com.:7", -ENOENT},
    {"db_1.example.com:65535", -ENOENT},
    {"x--y.example:7", -ENOENT},
    {"7.b:7", -ENOENT},
    {"4u.example:7", -ENOENT},
};

TEST_EACH(words, text_that_is_no_address_is_refused, ARRAY_LEN(bad))
{
    struct address a[2];

    ck_assert_msg(address_parse(a, 2, bad[_i].word) == bad[_i].rc, "%s gives %d", bad[_i].word,
                  address_parse(a, 2, bad[_i].word));
}

TEST(words, a_star_is_two_addresses)
{
    struct address a[2];
    char text[ADDRESS_TEXT_BYTES];

    ck_assert_int_eq(address_parse(a, 2, "*:7"), 2);
    ck_assert_str_eq(address_format(text, sizeof(text), &a[0]), "0.0.0.0:7");
    ck_assert_str_eq(address_format(text, sizeof(text), &a[1]), "[::]:7");
}

/* ${n} characters in all, then the text comes back whole. */
static int unix_of_length(char first, size_t n)
{
    char path[256], text[ADDRESS_TEXT_BYTES];
    struct address a[2];
    int rc;

    memset(path, 'x', n);
    path[0] = first;
    path[n] = '\0';
    rc = address_parse(a, 2, path);
    if (rc == 1)
        ck_assert_str_eq(address_format(text, sizeof(text), &a[0]), path);
    return rc;
}

TEST(words, a_unix_path_has_at_most_107_characters)
{
    ck_assert_int_eq(unix_of_length('/', 107), 1);
    ck_assert_int_eq(unix_of_length('@', 107), 1);
    ck_assert_int_eq(unix_of_length('/', 108), -ENAMETOOLONG);
    ck_assert_int_eq(unix_of_length('@', 108), -ENAMETOOLONG);
    ck_assert_int_eq(unix_of_length('/', 200), -ENAMETOOLONG);
}

/*
 * A host name of ${n} characters in labels of ${label} each, the last one perhaps shorter, then
 * ${end}.
 */
static int name_of_length(size_t n, size_t label, const char *end)
{
    char word[300];
    struct address a[2];

    for (size_t i = 0; i < n; i++)
        word[i] = i % (label + 1) == label ? '.' : 'x';
    strcpy(word + n, end);
    return address_parse(a, 2, word);
}

TEST(words, a_host_name_has_at_most_253_characters)
{
    ck_assert_int_eq(name_of_length(253, 63, ":7"), -ENOENT);
    ck_assert_int_eq(name_of_length(253, 63, ".:7"), -ENOENT);
    ck_assert_int_eq(name_of_length(254, 63, ":7"), -EINVAL);
    ck_assert_int_eq(name_of_length(254, 63, ".:7"), -EINVAL);
    ck_assert_int_eq(name_of_length(255, 50, ":7"), -EINVAL);
}

TEST(words, a_label_has_at_most_63_characters)
{
    ck_assert_int_eq(name_of_length(63, 63, ":7"), -ENOENT);
    ck_assert_int_eq(name_of_length(64, 64, ":7"), -EINVAL);
    ck_assert_int_eq(name_of_length(100, 64, ":7"), -EINVAL);
}

TEST(words, localhost_is_parsed_without_a_lookup)
{
    static const char *const words[] = {"localhost:7", "LocalHost:7", "localhost.:7"};
    struct address a[2];
    char text[ADDRESS_TEXT_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        ck_assert_int_eq(address_parse_target(a, 2, words[i]), 2);
        ck_assert_str_eq(address_format(text, sizeof(text), &a[0]), "127.0.0.1:7");
        ck_assert_str_eq(address_format(text, sizeof(text), &a[1]), "[::1]:7");
    }
    ck_assert_int_eq(address_parse_target(a, 2, "localhost:0"), -ERANGE);
    ck_assert_int_eq(address_parse_target(a, 2, "localhosts:7"), -ENOENT);
    ck_assert_int_eq(address_parse_target(a, 2, "/localhost:7"), 1);
}

TEST(words, abstract_name_equals_the_name_that_getsockname_returns)
{
    char text[ADDRESS_TEXT_BYTES];
    struct address a = sockets_address("@reactord-test-address"), got = {.len = sizeof(got.u)};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, &a.u.sa, a.len), 0);
    ck_assert_int_eq(getsockname(fd, &got.u.sa, &got.len), 0);
    ck_assert(address_equal(&a, &got));
    close(fd);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    got.len = sizeof(got.u);
    ck_assert_int_eq(getsockname(fd, &got.u.sa, &got.len), 0);
    ck_assert_str_eq(address_format(text, sizeof(text), &got), "unix:");
    close(fd);
}

TEST(words, equal_is_family_host_port_and_path)
{
    static const char *const words[] = {
        "127.0.0.1:7", "127.0.0.1:8", "127.0.0.2:7", "[::1]:7",        "[::1]:8",     "[::2]:7",
        "/a",          "/ab",         "@a",          "[fe80::1%lo]:7", "[fe80::1]:7",
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        for (size_t j = 0; j < ARRAY_LEN(words); j++) {
            struct address a = sockets_address(words[i]), b = sockets_address(words[j]);

            ck_assert_msg(address_equal(&a, &b) == (i == j), "%s and %s", words[i], words[j]);
        }
    }
}

static const struct {
    const char *listen;
    const char *target;
    bool covers;
} coverings[] = {
    {"127.0.0.1:7", "127.0.0.1:7", true},
    {"127.0.0.1:7", "127.0.0.1:8", false},
    {"0.0.0.0:7", "127.0.0.1:7", true},
    {"0.0.0.0:7", "127.9.9.9:7", true},
    {"0.0.0.0:7", "127.0.0.1:8", false},
    {"0.0.0.0:7", "0.0.0.0:7", true},
    {"0.0.0.0:7", "192.0.2.1:7", false},
    {"127.0.0.1:7", "127.0.0.2:7", false},
    {"127.0.0.1:7", "0.0.0.0:7", true},
    {"127.0.0.2:7", "0.0.0.0:7", false},
    {"192.0.2.1:7", "192.0.2.1:7", true},
    {"[::1]:7", "[::1]:7", true},
    {"[::]:7", "[::1]:7", true},
    {"[::]:7", "[::1]:8", false},
    {"[::]:7", "[::]:7", true},
    {"[::1]:7", "[::]:7", true},
    {"[::]:7", "[2001:db8::1]:7", false},
    {"[::]:7", "127.0.0.1:7", false},
    {"0.0.0.0:7", "[::1]:7", false},
    {"0.0.0.0:7", "[::ffff:127.0.0.1]:7", true},
    {"/a", "/a", true},
    {"/a", "/b", false},
    {"/a", "@a", false},
    {"/a", "127.0.0.1:7", false},
    {"[fe80::1%lo]:7", "[fe80::1%lo]:7", true},
};

TEST_EACH(words, listening_address_covers_each_target_that_reaches_it, ARRAY_LEN(coverings))
{
    struct address listen = sockets_address(coverings[_i].listen);
    struct address target = sockets_address(coverings[_i].target);

    ck_assert_msg(address_covers(&listen, &target) == coverings[_i].covers, "%s and %s",
                  coverings[_i].listen, coverings[_i].target);
}

/* A port that was free a moment ago, on all addresses. */
static uint16_t free_port(void)
{
    struct address a = sockets_address("[::]:1"), got = {.len = sizeof(got.u)};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);

    address_set_port(&a, 0);
    ck_assert_int_eq(bind(fd, &a.u.sa, a.len), 0);
    ck_assert_int_eq(getsockname(fd, &got.u.sa, &got.len), 0);
    close(fd);
    return address_port(&got);
}

/* Can both be listened on? */
static bool kernel_takes(const struct address *a, const struct address *b, const bool reuseport[2])
{
    struct sock_listen_conf conf = {.backlog = 1, .reuseport = reuseport[0]};
    int first, second, rc;

    ck_assert_int_eq(sock_listen(&first, a, &conf), 0);
    conf.reuseport = reuseport[1];
    rc = sock_listen(&second, b, &conf);
    close(first);
    if (rc == 0)
        close(second);
    else
        ck_assert_int_eq(rc, -EADDRINUSE);
    return rc == 0;
}

static const char *const listened[] = {"0.0.0.0:1",   "127.0.0.1:1", "127.0.0.2:1",
                                       "[::]:1",      "[::1]:1",     "@reactord-test-conflicts",
                                       "127.0.0.1:2", "[::1]:2"};

/* But for the same address: two that share it would share its clients. */
TEST_EACH(words, two_addresses_conflict_when_the_kernel_refuses_to_bind_both, 4)
{
    uint16_t ports[] = {free_port(), free_port()};
    bool reuseport[2] = {(_i & 1) != 0, (_i & 2) != 0};

    for (size_t i = 0; i < ARRAY_LEN(listened); i++) {
        for (size_t j = 0; j < ARRAY_LEN(listened); j++) {
            struct address a = sockets_address(listened[i]), b = sockets_address(listened[j]);

            address_set_port(&a, ports[address_port(&a) == 2]);
            address_set_port(&b, ports[address_port(&b) == 2]);
            ck_assert_msg(address_conflicts(&a, &b, reuseport[0] && reuseport[1]) ==
                              (i == j || !kernel_takes(&a, &b, reuseport)),
                          "%s and %s, reuseport %d and %d", listened[i], listened[j], reuseport[0],
                          reuseport[1]);
        }
    }
}

TEST(words, a_relative_path_is_shown_as_unix)
{
    static const char *const paths[] = {"10.0.0.1:1234", "@a", "x"};
    struct address a = sockets_address("/a");
    char text[ADDRESS_TEXT_BYTES], expected[ADDRESS_TEXT_BYTES];

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        strcpy(a.u.un.sun_path, paths[i]);
        a.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(paths[i]) + 1);
        snprintf(expected, sizeof(expected), "unix:%s", paths[i]);
        ck_assert_str_eq(address_format(text, sizeof(text), &a), expected);
    }
    memset(a.u.un.sun_path, 'x', sizeof(a.u.un.sun_path)); /* the longest, without a NUL */
    a.len = sizeof(a.u.un);
    ck_assert_uint_eq(strlen(address_format(text, sizeof(text), &a)), 5 + sizeof(a.u.un.sun_path));
}

TEST(words, path_and_abstract_name_are_unix_addresses)
{
    struct address path = sockets_address("/a"), name = sockets_address("@a"),
                   ip = sockets_address("[::1]:7");

    ck_assert(address_is_unix(&path));
    ck_assert(address_is_unix(&name));
    ck_assert(!address_is_unix(&ip));
}

TEST(words, unix_address_has_a_path_unless_it_is_unnamed)
{
    struct address path = sockets_address("/a"), ip = sockets_address("[::1]:7");
    struct address unnamed = {.len = sizeof(sa_family_t), .u.sa.sa_family = AF_UNIX};
    size_t len;
    const void *at = address_path(&path, &len);

    ck_assert_ptr_nonnull(at);
    ck_assert_uint_ge(len, 2);
    ck_assert_mem_eq(at, "/a", 2);
    ck_assert_ptr_null(address_path(&ip, &len));
    ck_assert_ptr_null(address_path(&unnamed, &len));
}

TEST(words, port_of_an_ip_address_is_read_and_set)
{
    struct address ipv4 = sockets_address("127.0.0.1:7"),
                   ipv6 = sockets_address("[fe80::1%1]:65535");
    struct address path = sockets_address("/a"), before = path,
                   unnamed = {.len = sizeof(sa_family_t)};
    char text[ADDRESS_TEXT_BYTES];

    ck_assert_uint_eq(address_port(&ipv4), 7);
    ck_assert_uint_eq(address_port(&ipv6), 65535);
    ck_assert_uint_eq(address_port(&path), 0);
    ck_assert_uint_eq(address_port(&unnamed), 0);
    address_set_port(&ipv4, 65535);
    ck_assert_str_eq(address_format(text, sizeof(text), &ipv4), "127.0.0.1:65535");
    address_set_port(&ipv6, 0);
    ck_assert_uint_eq(address_port(&ipv6), 0);
    address_set_port(&ipv6, 258);
    ck_assert_uint_eq(address_port(&ipv6), 258);
    ck_assert_uint_eq(ipv6.u.in6.sin6_scope_id, 1);
    address_set_port(&path, 7);
    ck_assert_mem_eq(&path, &before, sizeof(path));
}

TEST(words, recreated_interface_is_found_by_its_name)
{
    struct address before = sockets_address("[fe80::1%lo]:7"), now = before, other;

    ck_assert(!address_is_on_new_interface(&before, &now));
    now.u.in6.sin6_scope_id++;
    ck_assert(address_is_on_new_interface(&before, &now));
    other = now;
    other.u.in6.sin6_port++;
    ck_assert(!address_is_on_new_interface(&before, &other));
    strcpy(now.u.zoned.zone, "eth0");
    ck_assert(!address_is_on_new_interface(&before, &now));
    now = sockets_address("[fe80::1%1]:7");
    ck_assert_str_eq(now.u.zoned.zone, ""); /* a number means this index */
    now = sockets_address("192.0.2.1:7");
    ck_assert(!address_is_on_new_interface(&before, &now));
}
