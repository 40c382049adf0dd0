/* net/dns, net/srv: what is asked of whom, in which order, and what is read of the answers. */
#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/dns.h"
#include "net/name_servers.h"
#include "net/srv.h"
#include "support/suite.h"
#include "support/zone.h"

#define TTL_S 30

/* ---- records ---- */

static void put_address_of(struct zone_entry *e, const char *owner, unsigned char last)
{
    unsigned char a[4] = {127, 0, 0, last};

    zone_put(e, owner, ns_t_a, TTL_S, a, sizeof(a));
}

static void put_address(struct zone_entry *e, unsigned char last)
{
    put_address_of(e, NULL, last);
}

static void put_alias(struct zone_entry *e, const char *owner, const char *target, unsigned ttl_s)
{
    zone_put(e, owner, ns_t_cname, ttl_s, target, strlen(target) + 1);
}

static void put_srv(struct zone_entry *e, unsigned port, unsigned priority, const char *host,
                    size_t host_len)
{
    unsigned char data[6 + 256] = {(unsigned char)(priority >> 8), (unsigned char)priority, 0, 5,
                                   (unsigned char)(port >> 8),     (unsigned char)port};

    memcpy(data + 6, host, host_len);
    zone_put(e, NULL, ns_t_srv, TTL_S, data, 6 + host_len);
}

#define PUT_SRV(e, port, priority, host) put_srv(e, port, priority, host, sizeof(host))

/* ---- searches ---- */

static char found[256];
static struct dns_preference preference;
static struct dns_terms terms;

static void on_record(void *cookie, const struct dns_record *record)
{
    ck_assert_ptr_eq(cookie, &terms);
    snprintf(found + strlen(found), sizeof(found) - strlen(found), "%u:%u ", record->type,
             record->data[record->len - 1]);
}

static int search(const char *name)
{
    static const uint16_t types[] = {ns_t_a, ns_t_aaaa};
    struct dns_search s = {
        .name = name, .types = types, .n_types = 2, .on_record = on_record, .cookie = &terms};

    found[0] = '\0';
    zone_forget();
    return dns_search(&s, &terms);
}

static void setup_servers(unsigned n, const char *options)
{
    setenv("LOCALDOMAIN", "one.test two.test", 1);
    setenv("RES_OPTIONS", options, 1);
    terms = (struct dns_terms){.preference = &preference};
    zone_open(n);
}

static void setup(void)
{
    setup_servers(1, "ndots:1 timeout:1 attempts:1");
}

GROUP(dns, setup, zone_close);

TEST(dns, all_types_are_asked_for_and_the_shortest_ttl_is_known)
{
    struct zone_entry *e = zone_add("name.test", ns_t_a);

    put_alias(e, NULL, "\5other\4test", 20);
    put_address_of(e, "\5other\4test", 1);
    put_address_of(e, "\5OTHER\4test", 2);
    zone_put(zone_add("name.test", ns_t_aaaa), NULL, ns_t_aaaa, 40, &in6addr_loopback, 16);
    ck_assert_int_eq(search("name.test"), 3);
    ck_assert_str_eq(found, "1:1 1:2 28:1 ");
    ck_assert_str_eq(zone_asked(), "name.test/1@0 name.test/28@0 ");
    ck_assert_int_eq(terms.ttl_ns, 20 * NS_PER_S);
    ck_assert_uint_eq(terms.failed, 0);
}

TEST(dns, records_of_another_name_are_ignored)
{
    struct zone_entry *e = zone_add("name.test", ns_t_a);

    put_address_of(e, "\4evil\4test", 6);
    put_alias(e, "\1b\4test", "\1c\4test", 50);
    put_address_of(e, "\1c\4test", 1);
    put_address_of(e, "\1b\4evil", 7);
    put_alias(e, NULL, "\1b\4test", 60);
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_str_eq(found, "1:1 ");
    ck_assert_int_eq(terms.ttl_ns, TTL_S * NS_PER_S);
    e = zone_add("foreign.test", ns_t_a);
    put_address_of(e, "\4evil\4test", 6);
    ck_assert_int_eq(search("foreign.test"), -ENOENT);
    ck_assert_str_eq(found, "");
}

TEST(dns, aliases_that_never_end_are_an_error)
{
    struct zone_entry *e = zone_add("name.test", ns_t_a);

    put_alias(e, NULL, "\1b\4test", 60);
    put_alias(e, "\1b\4test", "\4name\4test", 60);
    ck_assert_int_eq(search("name.test"), -EREMOTEIO);
}

TEST(dns, an_alias_of_nothing_is_no_name)
{
    put_alias(zone_add("name.test", ns_t_a), NULL, "\1b\4test", 60);
    ck_assert_int_eq(search("name.test."), -ENOENT);
}

TEST(dns, search_domains_are_tried_after_or_before_the_name_by_its_dots)
{
    put_address(zone_add("host.two.test", ns_t_a), 7);
    ck_assert_int_eq(search("host"), 1);
    ck_assert_str_eq(zone_asked(), "host.one.test/1@0 host.one.test/28@0 "
                                   "host.two.test/1@0 host.two.test/28@0 ");
    ck_assert_int_eq(search("host."), -ENOENT);
    ck_assert_str_eq(zone_asked(), "host/1@0 host/28@0 ");
    put_address(zone_add("a.host.one.test", ns_t_a), 8);
    ck_assert_int_eq(search("a.host"), 1);
    ck_assert_str_eq(zone_asked(),
                     "a.host/1@0 a.host/28@0 a.host.one.test/1@0 a.host.one.test/28@0 ");
}

/* libc reads the options once. */
TEST(dns, the_number_of_dots_is_an_option)
{
    setenv("RES_OPTIONS", "ndots:2", 1);
    put_address(zone_add("a.host.one.test", ns_t_a), 8);
    ck_assert_int_eq(search("a.host"), 1);
    ck_assert_str_eq(zone_asked(), "a.host.one.test/1@0 a.host.one.test/28@0 ");
    ck_assert_int_eq(search("b.host"), -ENOENT);
    ck_assert_ptr_nonnull(strstr(zone_asked(), "b.host.two.test/28@0 b.host/1@0 b.host/28@0 "));
}

TEST(dns, the_root_may_be_a_search_domain)
{
    setenv("LOCALDOMAIN", ".", 1);
    put_address(zone_add("host", ns_t_a), 8);
    ck_assert_int_eq(search("host"), 1);
}

TEST(dns, malformed_domain_name_is_not_queried)
{
    ck_assert_int_eq(search("a..b"), -EINVAL);
    ck_assert_str_eq(zone_asked(), "");
}

TEST(dns, a_silent_name_server_is_asked_once)
{
    zone_server(0, ZONE_SILENT, 0);
    ck_assert_int_eq(search("name.test"), -EAGAIN);
    ck_assert_str_eq(zone_asked(), "name.test/1@0 name.test/28@0 ");
}

TEST(dns, a_domain_that_fails_keeps_no_other_from_being_asked)
{
    zone_add("host.one.test", ns_t_a)->rcode = ns_r_servfail;
    ck_assert_int_eq(search("host"), -EREMOTEIO);
    put_address(zone_add("host.two.test", ns_t_a), 7);
    ck_assert_int_eq(search("host"), 1);
    ck_assert_uint_eq(terms.failed, 0);
}

TEST(dns, failure_of_the_bare_name_after_search_domains_is_reported)
{
    zone_add("host", ns_t_a)->rcode = ns_r_servfail;
    ck_assert_int_eq(search("host"), -EREMOTEIO);
    ck_assert_ptr_nonnull(strstr(zone_asked(), "host.two.test/28@0 host/1@0 "));
}

static const struct {
    enum zone_way way;
    unsigned rcode;
    int error;
} failures[] = {
    {ZONE_ANSWERS, ns_r_servfail, -EREMOTEIO},
    {ZONE_ANSWERS, ns_r_refused, -EREMOTEIO},
    {ZONE_ANSWERS, ns_r_notimpl, -EREMOTEIO},
    {ZONE_ANSWERS, ns_r_formerr, -EREMOTEIO},
    {ZONE_REFERS, 0, -EREMOTEIO},
    {ZONE_SILENT, 0, -EAGAIN},
};

static void put_failure(const char *name, int type, int i)
{
    struct zone_entry *e = zone_add(name, type);

    e->way = failures[i].way;
    e->rcode = failures[i].rcode;
}

TEST_EACH(dns, addresses_of_one_family_suffice_and_the_failed_family_is_reported,
          ARRAY_LEN(failures))
{
    put_address(zone_add("name.test", ns_t_a), 1);
    put_failure("name.test", ns_t_aaaa, _i);
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_uint_eq(terms.failed, 1u << 1);
    ck_assert_int_eq(terms.error, failures[_i].error);
    zone_put(zone_add("six.test", ns_t_aaaa), NULL, ns_t_aaaa, 40, &in6addr_loopback, 16);
    put_failure("six.test", ns_t_a, _i);
    ck_assert_int_eq(search("six.test"), 1);
    ck_assert_uint_eq(terms.failed, 1u << 0);
}

TEST_EACH(dns, failure_of_one_family_is_an_error_and_not_a_missing_name, ARRAY_LEN(failures))
{
    zone_add("name.test", ns_t_a);
    put_failure("name.test", ns_t_aaaa, _i);
    ck_assert_int_eq(search("name.test."), failures[_i].error);
}

TEST(dns, malformed_answer_is_an_error_without_records)
{
    struct zone_entry *e = zone_add("name.test", ns_t_a);

    put_address(e, 1);
    put_address(e, 2);
    e->cut = 2;
    ck_assert_int_eq(search("name.test"), -EREMOTEIO);
    ck_assert_str_eq(found, "");
}

TEST(dns, answers_to_other_questions_are_ignored)
{
    struct zone_entry *e = zone_add("name.test", ns_t_a);

    put_address(e, 1);
    e->way = ZONE_LIES_FIRST;
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_str_eq(found, "1:1 ");
}

TEST(dns, a_truncated_answer_is_asked_for_by_tcp)
{
    struct zone_entry *e = zone_add("name.test", ns_t_a);

    for (unsigned i = 1; i < 100; i++)
        put_address(e, (unsigned char)i);
    e->way = ZONE_TRUNCATES;
    ck_assert_int_eq(search("name.test"), 99);
    ck_assert_str_eq(zone_asked(), "name.test/1@0 name.test/28@0 name.test/1@0+tcp ");
}

TEST(dns, tcp_alone_is_an_option)
{
    setenv("RES_OPTIONS", "use-vc timeout:1 attempts:1", 1);
    put_address(zone_add("name.test", ns_t_a), 1);
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_ptr_nonnull(strstr(zone_asked(), "name.test/1@0+tcp "));
    ck_assert_ptr_null(strstr(zone_asked(), "@0 "));
    zone_server(0, ZONE_SILENT, 0);
    ck_assert_int_eq(search("name.test"), -EAGAIN);
}

TEST(dns, a_name_server_that_knows_no_opt_record_is_asked_without)
{
    setenv("RES_OPTIONS", "edns0 timeout:1 attempts:1", 1);
    put_address(zone_add("name.test", ns_t_a), 1);
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_str_eq(zone_asked(), "name.test/1@0 name.test/28@0 ");
    zone_server(0, ZONE_NO_OPT, 0);
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_str_eq(zone_asked(), "name.test/1@0 name.test/28@0 name.test/1@0 name.test/28@0 ");
}

/* ---- two name servers ---- */

static void setup_two(void)
{
    setup_servers(2, "timeout:1 attempts:2");
}

GROUP(two, setup_two, zone_close);

TEST_EACH(two, the_next_name_server_is_asked_when_the_first_fails, ARRAY_LEN(failures))
{
    put_address(zone_add("name.test", ns_t_a), 1);
    zone_server(0, failures[_i].way, failures[_i].rcode);
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_ptr_nonnull(strstr(zone_asked(), "name.test/1@0 "));
    ck_assert_ptr_nonnull(strstr(zone_asked(), "name.test/1@1 "));
    ck_assert_uint_eq(terms.failed, 0);
}

TEST(two, the_name_server_that_answered_last_is_asked_first)
{
    put_address(zone_add("name.test", ns_t_a), 1);
    zone_kill(0);
    ck_assert_int_eq(search("name.test"), 1);
    zone_server(1, ZONE_SILENT, 0);
    zone_revive();
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_ptr_eq(strstr(zone_asked(), "name.test/1@1 "), zone_asked());
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_str_eq(zone_asked(), "name.test/1@0 name.test/28@0 ");
}

TEST(two, first_negative_answer_is_final)
{
    zone_server(0, ZONE_ANSWERS, ns_r_nxdomain);
    put_address(zone_add("name.test", ns_t_a), 1);
    ck_assert_int_eq(search("name.test."), -ENOENT);
    ck_assert_str_eq(zone_asked(), "name.test/1@0 name.test/28@0 ");
}

TEST(two, name_server_whose_answers_never_end_is_given_up)
{
    zone_server(0, ZONE_ONLY_LIES, 0);
    put_address(zone_add("name.test", ns_t_a), 1);
    ck_assert_int_eq(search("name.test."), 1);
    ck_assert_uint_eq(zone_count("name.test/1@1 "), 1);
}

TEST(two, failing_and_silent_name_servers_are_asked_as_often_as_the_options_say)
{
    zone_server(0, ZONE_ANSWERS, ns_r_servfail);
    zone_server(1, ZONE_SILENT, 0);
    ck_assert_int_eq(search("name.test."), -EREMOTEIO);
    ck_assert_uint_eq(zone_count("name.test/1@0 "), 2);
    ck_assert_uint_eq(zone_count("name.test/1@1 "), 2);
}

TEST(two, time_limit_makes_one_attempt_of_that_length)
{
    int64_t began_ns = clock_now_ns();

    setenv("RES_OPTIONS", "timeout:30 attempts:3", 1);
    terms.timeout_s = 1;
    zone_server(0, ZONE_SILENT, 0);
    zone_server(1, ZONE_SILENT, 0);
    ck_assert_int_eq(search("name.test."), -EAGAIN);
    ck_assert_int_ge(clock_now_ns() - began_ns, 2 * NS_PER_S);
    ck_assert_int_lt(clock_now_ns() - began_ns, 30 * NS_PER_S);
    ck_assert_uint_eq(zone_count("name.test/1@"), 2);
}

/* ---- services ---- */

TEST(dns, odd_records_of_a_service_are_left_out_alone)
{
    struct srv_record out[8];
    struct zone_entry *e = zone_add("name.test", ns_t_srv);

    PUT_SRV(e, 80, 20, "\1b\4test");
    PUT_SRV(e, 80, 1, "\3a b\4test");  /* a blank */
    PUT_SRV(e, 80, 1, "\3a.b\4test");  /* a dot within a label */
    PUT_SRV(e, 80, 1, "");             /* the root: decidedly not there */
    PUT_SRV(e, 80, 1, "\xc0\xff");     /* points past the end */
    PUT_SRV(e, 0, 1, "\1c\4test");     /* no port */
    put_srv(e, 80, 1, "", 0);          /* no host */
    PUT_SRV(e, 80, 10, "\1a\xc0\x11"); /* points at .test in the question */
    ck_assert_int_eq(srv_resolve(out, 8, "name.test", &terms), 2);
    ck_assert_str_eq(out[0].target, "a.test:80");
    ck_assert_str_eq(out[1].target, "b.test:80");
    ck_assert_uint_eq(out[1].priority, 20);
    ck_assert_uint_eq(out[1].weight, 5);
    ck_assert_int_eq(terms.ttl_ns, TTL_S * NS_PER_S);
    ck_assert_int_eq(srv_resolve(out, 1, "name.test", &terms), 1);
    ck_assert_str_eq(out[0].target, "a.test:80");
}

TEST(dns, service_with_odd_records_only_has_no_records)
{
    struct srv_record out[8];

    PUT_SRV(zone_add("name.test", ns_t_srv), 80, 1, "");
    ck_assert_int_eq(srv_resolve(out, 8, "name.test", &terms), -ENOENT);
}

GROUP(none, NULL, NULL);

TEST(none, without_a_resolver_state_there_is_no_answer)
{
    ck_assert_int_eq(search("name.test"), -ENOSYS);
    ck_assert_str_eq(zone_asked(), "");
}
