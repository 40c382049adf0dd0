/* option/option: the servers of an upstream. */
#include <errno.h>

#include "option/option.h"
#include "support/names.h"
#include "support/options.h"
#include "support/suite.h"
#include "upstream/upstream.h"

GROUP(table, options_setup, options_teardown);

TEST(table, a_server_has_an_address_and_perhaps_words)
{
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.a", "127.0.0.1:7"), 0);
    ck_assert_uint_eq(options.conf.upstream.n_servers, 1);
    ck_assert_str_eq(options.servers[0].id, "a");
    ck_assert_str_eq(options.servers[0].address_text, "127.0.0.1:7");
    ck_assert_uint_eq(options.servers[0].n_addresses, 1);
    ck_assert_uint_eq(options.servers[0].weight, 1);
    ck_assert(!options.servers[0].backup);
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.b", "/run/x\tbackup  weight=256"), 0);
    ck_assert_uint_eq(options.servers[0].weight, 256);
    ck_assert(options.servers[0].backup);
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.c", "localhost:7"), 0);
    ck_assert_uint_eq(options.servers[0].n_addresses, 2);
}

TEST(table, server_may_have_weight_0_or_be_disabled)
{
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.a", "127.0.0.1:7 weight=0"), 0);
    ck_assert_uint_eq(options.servers[0].weight, 0);
    ck_assert(!options.servers[0].disabled);
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.b", "127.0.0.1:7 disabled"), 0);
    ck_assert_uint_eq(options.servers[0].weight, 1);
    ck_assert(options.servers[0].disabled);
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.c", "_db._tcp.example.com weight=0"), 0);
    ck_assert_uint_eq(options.servers[0].weight, 0);
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.d", "_db._tcp.example.com disabled"), 0);
    ck_assert_uint_eq(options.servers[0].weight, 1);
    ck_assert(options.servers[0].disabled);
}

TEST(table, host_name_of_a_server_is_accepted_without_a_lookup)
{
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.a", "db.example.com:5432 weight=2"), 0);
    ck_assert_str_eq(options.servers[0].address_text, "db.example.com:5432");
    ck_assert_uint_eq(options.servers[0].n_addresses, 0);
    ck_assert_uint_eq(options.servers[0].weight, 2);
    ck_assert_uint_eq(names_asked(), 0);
}

static const char *const bad_servers[] = {
    "127.0.0.1",
    "127.0.0.1:7 weight=-1",
    "127.0.0.1:7 weight=0 weight=0",
    "127.0.0.1:7 disabled disabled",
    "127.0.0.1:7 disabled=yes",
    "_db._tcp.example.com weight=1",
    "127.0.0.1:7 weight=257",
    "127.0.0.1:7 weight=",
    "127.0.0.1:7 weight=1x",
    "127.0.0.1:7 weight=1 weight=1",
    "127.0.0.1:7 backup backup",
    "127.0.0.1:7 wieght=1",
    "127.0.0.1:7, 127.0.0.1:8",
    "*:7",
    "db..example.com:7",
    "-db.example.com:7",
    "db.example.com",
    "db.example.com:0",
    " ",
};

TEST_EACH(table, a_bad_server_is_refused_and_not_added, ARRAY_LEN(bad_servers))
{
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.a", bad_servers[_i]), -EINVAL);
    ck_assert_uint_eq(options.conf.upstream.n_servers, 0);
}

TEST(table, a_server_needs_an_id)
{
    ck_assert_int_eq(options_try(OPTION_UPSTREAM, "server.", "127.0.0.1:7"), -EINVAL);
    ck_assert_int_eq(
        options_try(OPTION_UPSTREAM, "server.a23456789012345678901234567890123", "127.0.0.1:7"),
        -EINVAL);
}
