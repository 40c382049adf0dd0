/* admin/host: which Host and Origin are ours. */
#include <check.h>

#include "admin/host.h"
#include "base/must.h"
#include "net/address.h"
#include "support/suite.h"

static struct address at(const char *word)
{
    struct address a[2];

    ck_assert_int_eq(address_parse(a, 2, word), 1);
    return a[0];
}

static const struct {
    const char *host, *local;
} ours[] = {
    {"localhost", "127.0.0.1:9"},      {"LocalHost:9", "127.0.0.1:9"},
    {"localhost:65535", "[::1]:9"},    {"127.0.0.1", "127.0.0.1:9"},
    {"127.9.9.9:1", "127.0.0.1:9"},    {"[::1]", "[::1]:9"},
    {"[::1]:9", "127.0.0.1:9"},        {"192.0.2.7:9", "192.0.2.7:9"},
    {"192.0.2.7", "192.0.2.7:9"},      {"[2001:db8::7]:9", "[2001:db8::7]:9"},
    {"[::ffff:127.0.0.1]", "[::1]:9"},
};

GROUP(host, NULL, NULL);

TEST_EACH(host, localhost_loopback_and_the_address_itself_are_ours, ARRAY_LEN(ours))
{
    struct address local = at(ours[_i].local);

    ck_assert(host_is_ours(ours[_i].host, &local));
}

static const char *const foreign[] = {
    "",
    ":",
    ":9",
    "evil.example",
    "evil.example:9",
    "localhost.evil.example",
    "localhost:",
    "localhost:0",
    "localhost:65536",
    "localhost:9x",
    "localhost:9:9",
    "localhost ",
    " localhost",
    "localhost/",
    "a@localhost",
    "127.0.0.1.nip.io",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "192.0.2.8:9",
    "0.0.0.0",
    "*",
    "::1",
    "[::1",
    "[::1]9",
    "[::1]:x",
    "[]",
    "[",
    "[2001:db8::7]:9",
    "[::]",
    "/run/x.sock",
    "@x",
    "unix:",
};

TEST_EACH(host, foreign_name_or_address_is_not_ours, ARRAY_LEN(foreign))
{
    struct address local = at("192.0.2.7:9");

    ck_assert(!host_is_ours(foreign[_i], &local));
}

TEST(host, missing_or_endless_host_is_not_ours)
{
    struct address local = at("127.0.0.1:9");
    char endless[1000];

    for (size_t i = 0; i < sizeof(endless); i++)
        endless[i] = i + 1 < sizeof(endless) ? 'a' : '\0';
    ck_assert(!host_is_ours(NULL, &local));
    ck_assert(!host_is_ours(endless, &local));
}

GROUP(origin, NULL, NULL);

TEST(origin, missing_origin_or_origin_of_the_host_is_ours)
{
    ck_assert(host_is_origin(NULL, "localhost:9"));
    ck_assert(host_is_origin(NULL, NULL));
    ck_assert(host_is_origin("http://localhost:9", "localhost:9"));
    ck_assert(host_is_origin("https://LOCALHOST:9", "localhost:9"));
    ck_assert(host_is_origin("http://[::1]:9", "[::1]:9"));
}

TEST(origin, origin_of_another_site_is_not_ours)
{
    ck_assert(!host_is_origin("http://evil.example", "localhost:9"));
    ck_assert(!host_is_origin("http://localhost", "localhost:9"));
    ck_assert(!host_is_origin("http://localhost:9/", "localhost:9"));
    ck_assert(!host_is_origin("null", "localhost:9"));
    ck_assert(!host_is_origin("", "localhost:9"));
    ck_assert(!host_is_origin("localhost:9", "localhost:9"));
    ck_assert(!host_is_origin("ftp://localhost:9", "localhost:9"));
    ck_assert(!host_is_origin("http://localhost:9", NULL));
}
