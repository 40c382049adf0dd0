/* names/resolver: the hosts of a service, the addresses of a name, and their families. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "names/resolver_internal.h"
#include "net/resolve.h"
#include "support/log_lines.h"
#include "support/lookups.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(resolver, lookups_setup, lookups_teardown);

/* Two of IPv6 for "5" and for "6", the second of which has one of IPv4 as well. */
static int look_up_families(struct address *out, size_t max, const char *word,
                            struct dns_terms *terms)
{
    struct address list[2];

    (void)terms;
    ck_assert_uint_ge(max, 2);
    ck_assert_int_eq(address_parse(list, 2, "[::1]:5"), 1);
    out[0] = list[0];
    if (strcmp(word, "6") == 0)
        sockets_loopback(&out[1], 6);
    else
        ck_assert_int_eq(address_parse(&out[1], 2, "[::1]:6"), 1);
    return 2;
}

/* "NAME load n-of-addresses" of each server. */
static void list_servers(void *arg)
{
    const struct server_set *set = membership_now(&lookups.upstream->membership);
    char *text = arg;

    *text = '\0';
    for (unsigned i = 0; i < set->n; i++) {
        const struct endpoint *e = &set->servers[i]->endpoint;

        text += sprintf(text, "%s%s*%u/%u", i > 0 ? " " : "", e->name, atomic_load(&e->weight),
                        e->level);
    }
}

static const char *servers_now(void)
{
    static char text[1024];

    loop_runner_call(lookups.control, list_servers, text);
    return text;
}

TEST(resolver, each_address_of_a_name_is_a_server)
{
    lookups_name_is(0, UPSTREAM_NAME_EACH);
    lookups.server_confs[0].weight = 3;
    lookups.upstream_conf.resolve_interval_ns = lookups.conf.retry_ns = 5 * NS_PER_MS;
    atomic_store(&lookups.answers[0], 3);
    lookups_start(1, UNTIL_LIMIT_NS);
    ck_assert_str_eq(servers_now(),
                     "s@127.0.0.1:1000*3/0 s@127.0.0.1:1001*3/0 s@127.0.0.1:1002*3/0");
    atomic_store(&lookups.answers[0], 1);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1000*3/0") == 0);
    atomic_store(&lookups.answers[0], -ENOENT);
    lookups_pass_lookups(0, 3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1000*3/0");
}

TEST(resolver, each_family_of_a_name_adds_its_addresses_as_servers)
{
    lookups.conf.lookup = look_up_families;
    snprintf(lookups.texts[0], sizeof(lookups.texts[0]), "5");
    snprintf(lookups.texts[1], sizeof(lookups.texts[1]), "6");
    lookups.server_confs[1].id = "t";
    lookups_name_is(0, UPSTREAM_NAME_EACH);
    lookups_name_is(1, UPSTREAM_NAME_EACH);
    lookups_start(2, UNTIL_LIMIT_NS);
    ck_assert_str_eq(servers_now(), "s@[::1]:5*1/0 s@[::1]:6*1/0 t@[::1]:5*1/0");
    ck_assert_uint_eq(lookups_known(2), 2);
}

/* 300 addresses, of which another one comes first each time. */
static int look_up_many(struct address *out, size_t max, const char *word, struct dns_terms *terms)
{
    unsigned first = atomic_fetch_add(&lookups.lookups[0], 1) * 71, n = 300;

    (void)terms;
    ck_assert_str_eq(word, "0");
    for (unsigned i = 0; i < n && i < max; i++)
        sockets_loopback(&out[i], 1000 + (first + i) % n);
    return (int)(n < max ? n : max);
}

static void count_servers(void *arg)
{
    *(unsigned *)arg = membership_now(&lookups.upstream->membership)->n;
}

TEST_EACH(resolver, choice_among_too_many_addresses_is_stable, 2)
{
    unsigned n = 0;

    lookups.conf.lookup = look_up_many;
    lookups_name_is(0, _i ? UPSTREAM_NAME_ONE : UPSTREAM_NAME_EACH);
    lookups.upstream_conf.resolve_interval_ns = NS_PER_MS;
    lookups_start(1, UNTIL_LIMIT_NS);
    lookups_pass_lookups(0, 5);
    loop_runner_call(lookups.control, count_servers, &n);
    ck_assert_uint_eq(n, _i ? 1 : RESOLVER_ADDRESSES);
    ck_assert_uint_eq(lookups_known(0), _i ? ENDPOINT_ADDRESSES : 1);
    ck_assert_uint_eq(log_lines_with("resolves to other addresses"), 0);
}

TEST(resolver, each_host_of_a_service_has_its_weight_and_its_priority)
{
    lookups_record(0, "8", 10, 40000);
    lookups_record(1, "9", 10, 20000);
    lookups_record(2, "7", 20, 0);
    atomic_store(&lookups.answers[8], 2);
    lookups_start_service(3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/1 s@127.0.0.1:1800*256/0 "
                                    "s@127.0.0.1:1801*256/0 s@127.0.0.1:1900*128/0");
}

TEST_EACH(resolver, a_host_without_an_address_is_left_out, 3)
{
    static const int errors[] = {-ENOENT, -EINVAL, -ERANGE}; /* the name of it is none */

    log_lines_capture(LOG_LEVEL_NOTICE);
    lookups_record(0, "7", 1, 1);
    lookups_record(1, "8", 1, 2);
    atomic_store(&lookups.answers[7], errors[_i]);
    lookups_start_service(2);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1800*2/0");
    ck_assert_uint_eq(log_lines_with("cannot be looked up"), 0); /* nothing to try again */
}

TEST(resolver, host_whose_lookup_fails_keeps_its_addresses)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    lookups.upstream_conf.resolve_interval_ns = lookups.conf.retry_ns = 5 * NS_PER_MS;
    lookups_record(0, "7", 1, 1);
    lookups_record(1, "8", 1, 1);
    lookups_start_service(2);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/0");
    atomic_store(&lookups.answers[7], -EAGAIN);
    lookups_pass_lookups(7, 3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/0");
    ck_assert_uint_eq(
        log_lines_with("s (0): 1 of 2 SRV hosts cannot be looked up, such as 7: no name "
                       "server answers; their last known addresses, if any, stay in use"),
        1);
    atomic_store(&lookups.shift, 5000);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:6800*1/0") == 0);
    atomic_store(&lookups.shift, 0);
    atomic_store(&lookups.answers[8], -EREMOTEIO); /* that is news */
    UNTIL(log_lines_with(
              "2 of 2 SRV hosts cannot be looked up, such as 8: the name server fails") == 1);
    atomic_store(&lookups.answers[7], 1);
    atomic_store(&lookups.answers[8], 1);
    UNTIL(log_lines_with("lookups of its SRV hosts no longer fail") == 1);
    atomic_store(&lookups.n_records, 1);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0") == 0);
}

TEST(resolver, host_that_fails_from_the_start_does_not_delay_the_others)
{
    lookups_record(0, "7", 1, 1);
    lookups_record(1, "8", 1, 1);
    atomic_store(&lookups.answers[7], -EAGAIN);
    lookups.conf.retry_ns = 5 * NS_PER_MS; /* also with an interval of 0, until it is known */
    lookups_start_service(2);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1800*1/0");
    atomic_store(&lookups.answers[7], 1);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/0") == 0);
}

/* ---- what fails, and what is said not to exist ---- */

static atomic_uint failing; /* enum resolve_family */

static int look_up_unless_failing(struct address *out, size_t max, const char *word,
                                  struct dns_terms *terms)
{
    static const char *const all[] = {"127.0.0.1:1", "127.0.0.1:2", "[::1]:1", "[::1]:2"};
    unsigned n = 0;

    atomic_fetch_add(&lookups.lookups[atoi(word)], 1);
    terms->failed = atomic_load(&failing);
    terms->error = -EREMOTEIO;
    for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
        struct address list[2];

        ck_assert_int_eq(address_parse(list, 2, all[i]), 1);
        if (resolve_family(&list[0]) & ~terms->failed && n < max)
            out[n++] = list[0];
    }
    return (int)n;
}

static void start_failing(enum upstream_names names)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    lookups.conf.lookup = look_up_unless_failing;
    lookups.upstream_conf.resolve_interval_ns = lookups.conf.retry_ns = 5 * NS_PER_MS;
    if (names == UPSTREAM_SERVICE) {
        lookups_record(0, "7", 1, 1);
        lookups_start_service(1);
    } else {
        lookups_name_is(0, names);
        lookups_start(1, UNTIL_LIMIT_NS);
    }
}

#define ALL_FOUR "s@127.0.0.1:1*1/0 s@127.0.0.1:2*1/0 s@[::1]:1*1/0 s@[::1]:2*1/0"

TEST_EACH(resolver, failed_family_keeps_its_addresses_and_is_logged_once, 2)
{
    const char *family = _i ? "IPv6" : "IPv4";
    char text[128];

    start_failing(UPSTREAM_NAME_EACH);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    atomic_store(&failing, 1u << _i);
    lookups_pass_lookups(0, 3);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    snprintf(text, sizeof(text),
             "cannot look up the %s addresses of the name: the name server fails; they stay in use",
             family);
    ck_assert_uint_eq(log_lines_with(text), 1);
    atomic_store(&failing, 0);
    snprintf(text, sizeof(text), "lookups of its %s addresses no longer fail", family);
    UNTIL(log_lines_with(text) == 1);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    ck_assert_uint_eq(log_lines_with("resolves to other addresses"), 0);
}

TEST_EACH(resolver, failed_family_keeps_its_addresses_of_a_single_server, 2)
{
    start_failing(UPSTREAM_NAME_ONE);
    atomic_store(&failing, 1u << _i);
    lookups_pass_lookups(0, 3);
    ck_assert_uint_eq(lookups_known(0), 4);
    ck_assert_uint_eq(log_lines_with("resolves to other addresses"), 0);
}

TEST_EACH(resolver, failed_family_keeps_its_addresses_of_a_host_of_a_service, 2)
{
    start_failing(UPSTREAM_SERVICE);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    atomic_store(&failing, 1u << _i);
    lookups_pass_lookups(7, 3);
    ck_assert_str_eq(servers_now(), ALL_FOUR);
    ck_assert_uint_eq(log_lines_with("1 of 1 SRV hosts cannot be looked up, such as 7"), 1);
    atomic_store(&failing, 0);
    UNTIL(log_lines_with("lookups of its SRV hosts no longer fail") == 1);
}

/* Some name servers drop queries for AAAA: nothing is lost by that. */
TEST(resolver, failed_family_without_addresses_is_not_logged)
{
    atomic_store(&failing, RESOLVE_IPV6);
    start_failing(UPSTREAM_NAME_EACH);
    lookups_pass_lookups(0, 3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1*1/0 s@127.0.0.1:2*1/0");
    ck_assert_uint_eq(log_lines_with("cannot"), 0);
}

TEST_EACH(resolver, address_in_two_records_has_the_weight_of_the_first, 2)
{
    lookups_record(0, "7", 1, 1);
    lookups_record(1, "8", 2, 1);
    lookups_record(2, "7", 3, 1);
    lookups.conf.service_ns = _i ? 1 : LATER; /* 1: each lookup begins with another host */
    lookups.conf.retry_ns = NS_PER_MS;
    lookups_start_service(3);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/1") == 0);
    if (_i)
        lookups_pass_lookups(8, 3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/1");
}

/* Any host has as many addresses as count. */
static int look_up_sixteen(struct address *out, size_t max, const char *word,
                           struct dns_terms *terms)
{
    ck_assert_uint_ge(max, ENDPOINT_ADDRESSES);
    terms->ttl_ns = CLOCK_NEVER;
    for (unsigned i = 0; i < ENDPOINT_ADDRESSES; i++)
        sockets_loopback(&out[i], 1000 + 100 * (unsigned)atoi(word) + i);
    atomic_fetch_add(&lookups.lookups[0], 1);
    return ENDPOINT_ADDRESSES;
}

/* How many servers there are on each level. */
static void count_levels(void *arg)
{
    const struct server_set *set = membership_now(&lookups.upstream->membership);
    unsigned *n = arg;

    memset(n, 0, BALANCER_LEVELS * sizeof(*n));
    for (unsigned i = 0; i < set->n; i++)
        n[atomic_load(&set->servers[i]->endpoint.level)]++;
}

/*
 * Each lookup begins with another host, so that those of the first priority are often looked up
 * last.
 */
TEST(resolver, too_many_addresses_of_a_service_are_cut_by_priority)
{
    unsigned hosts = RESOLVER_ADDRESSES / ENDPOINT_ADDRESSES + 1, n[BALANCER_LEVELS] = {0};
    char name[8];

    for (unsigned i = 0; i < hosts; i++) {
        snprintf(name, sizeof(name), "%u", i);
        lookups_record(i, name, i == 0 ? 1 : i < hosts - 1 ? 2 : 3, 1);
    }
    lookups.conf.lookup = look_up_sixteen;
    lookups.conf.service_ns = 1;
    lookups.conf.retry_ns = lookups.upstream_conf.resolve_interval_ns = NS_PER_MS;
    lookups_start_service((int)hosts);
    UNTIL((loop_runner_call(lookups.control, count_levels, n), n[0] + n[1] == RESOLVER_ADDRESSES));
    for (unsigned i = 0; i < 2 * hosts; i++) {
        lookups_pass_lookups(0, 1);
        loop_runner_call(lookups.control, count_levels, n);
        ck_assert_uint_eq(n[0], ENDPOINT_ADDRESSES);
        ck_assert_uint_eq(n[1], RESOLVER_ADDRESSES - ENDPOINT_ADDRESSES);
    }
}

/* Time for one host only: the next lookup begins with the one after it. */
TEST(resolver, lookups_of_all_hosts_share_one_deadline)
{
    lookups_record(0, "7", 1, 1);
    lookups_record(1, "8", 1, 1);
    lookups_record(2, "9", 1, 1);
    lookups.conf.service_ns = 1;
    lookups_start_service(3);
    ck_assert_str_eq(servers_now(), "s@127.0.0.1:1700*1/0");
    ck_assert_uint_eq(atomic_load(&lookups.lookups[8]) + atomic_load(&lookups.lookups[9]), 0);
    ck_assert_uint_eq(
        log_lines_with("2 of 3 SRV hosts cannot be looked up, such as 8: no time is left"), 1);
}

TEST(resolver, hosts_not_looked_up_in_time_come_first_in_the_next_lookup)
{
    lookups_record(0, "7", 1, 1);
    lookups_record(1, "8", 1, 1);
    lookups_record(2, "9", 1, 1);
    lookups.conf.service_ns = 1;
    lookups.conf.retry_ns = NS_PER_MS;
    lookups_start_service(3);
    UNTIL(strcmp(servers_now(), "s@127.0.0.1:1700*1/0 s@127.0.0.1:1800*1/0 s@127.0.0.1:1900*1/0") ==
          0);
}

/* One thread: name 1 waits while host 7 is looked up. */
TEST(resolver, other_names_are_looked_up_between_two_hosts)
{
    lookups_record(0, "7", 1, 1);
    lookups_record(1, "8", 1, 1);
    lookups_record(2, "9", 1, 1);
    lookups.conf.lookup_service = lookups_look_up_service;
    lookups_name_is(0, UPSTREAM_SERVICE);
    atomic_store(&lookups.n_records, 3);
    atomic_store(&lookups.answers[7], SILENT);
    lookups_create(2, 1);
    ck_assert_int_eq(lookups_try_start(0), 0);
    UNTIL(atomic_load(&lookups.lookups[7]) == 1);
    atomic_store(&lookups.answers[7], 1);
    UNTIL(atomic_load(&lookups.first_order[9]) > 0 && atomic_load(&lookups.first_order[1]) > 0);
    ck_assert_uint_lt(atomic_load(&lookups.first_order[1]), atomic_load(&lookups.first_order[9]));
}
