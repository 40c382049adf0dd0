/* net/dns, net/srv: what is asked, in which order, and what is read of the answers. */
#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/dns.h"
#include "net/srv.h"
#include "support/names.h"
#include "support/suite.h"

#define TTL_S 30

/* The zone: an answer for each name and type that is known, and a log of the questions. */
struct zone_entry {
    char name[64];
    int type;
    int error;      /* of res_nquerydomain(3), if not 0 */
    unsigned rcode; /* left in the buffer with an error */
    unsigned char answer[4096];
    int len;
};

static struct zone_entry zone[8];
static unsigned zone_size;
static char asked[512];
static int last_retry, last_retrans;

static struct zone_entry *zone_find(const char *name, int type)
{
    for (unsigned i = 0; i < zone_size; i++)
        if (zone[i].type == type && strcmp(zone[i].name, name) == 0)
            return &zone[i];
    return NULL;
}

/* In place of libc's. */
int res_nquerydomain(res_state state, const char *name, const char *domain, int class, int type,
                     unsigned char *answer, int size)
{
    char full[256];
    struct zone_entry *e;

    snprintf(full, sizeof(full), "%s%s%s", name, domain ? "." : "", domain ? domain : "");
    snprintf(asked + strlen(asked), sizeof(asked) - strlen(asked), "%s/%d ", full, type);
    ck_assert_int_eq(class, ns_c_in);
    ck_assert_int_ge(size, 65535);
    last_retry = state->retry;
    last_retrans = state->retrans;
    e = zone_find(full, type);
    state->res_h_errno = e ? e->error : HOST_NOT_FOUND;
    if (e)
        memcpy(answer, e->answer, (size_t)e->len);
    return e && !e->error ? e->len : -1;
}

/* ---- answers ---- */

static void put(struct zone_entry *e, const void *data, size_t len)
{
    ck_assert_uint_le((size_t)e->len + len, sizeof(e->answer));
    memcpy(e->answer + e->len, data, len);
    e->len += (int)len;
}

static void put16(struct zone_entry *e, unsigned value)
{
    unsigned char data[2] = {(unsigned char)(value >> 8), (unsigned char)value};

    put(e, data, sizeof(data));
}

/* A name of labels, each with its length in front: "\3www\4test". */
static void put_labels(struct zone_entry *e, const char *labels)
{
    put(e, labels, strlen(labels) + 1);
}

static struct zone_entry *zone_add(const char *name, int type)
{
    static const unsigned char header[12] = {0, 1, 0x81, 0x80, 0, 1};
    struct zone_entry *e = &zone[zone_size++];

    snprintf(e->name, sizeof(e->name), "%s", name);
    e->type = type;
    put(e, header, sizeof(header));
    put_labels(e, "\4name\4test");
    put16(e, (unsigned)type);
    put16(e, ns_c_in);
    return e;
}

static void zone_fail(const char *name, int type, int error, unsigned rcode)
{
    struct zone_entry *e = zone_add(name, type);

    e->error = error;
    e->answer[3] = (unsigned char)(0x80 | rcode);
}

static void put_record(struct zone_entry *e, int type, unsigned ttl_s, const void *data, size_t len)
{
    e->answer[7]++;
    put16(e, 0xc00c); /* the name of the question */
    put16(e, (unsigned)type);
    put16(e, ns_c_in);
    put16(e, 0);
    put16(e, ttl_s);
    put16(e, (unsigned)len);
    put(e, data, len);
}

static void put_address(struct zone_entry *e, unsigned char last)
{
    unsigned char a[4] = {127, 0, 0, last};

    put_record(e, ns_t_a, TTL_S, a, sizeof(a));
}

static void put_srv(struct zone_entry *e, unsigned port, unsigned priority, const char *host,
                    size_t host_len)
{
    unsigned char data[6 + 256] = {(unsigned char)(priority >> 8), (unsigned char)priority, 0, 5,
                                   (unsigned char)(port >> 8),     (unsigned char)port};

    memcpy(data + 6, host, host_len);
    put_record(e, ns_t_srv, TTL_S, data, 6 + host_len);
}

#define PUT_SRV(e, port, priority, host) put_srv(e, port, priority, host, sizeof(host))

/* ---- searches ---- */

static char found[256];
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

    found[0] = asked[0] = '\0';
    return dns_search(&s, &terms);
}

static void setup(void)
{
    names_allow_dns();
    setenv("LOCALDOMAIN", "one.test two.test", 1);
    setenv("RES_OPTIONS", "ndots:1", 1);
}

GROUP(dns, setup, NULL);

TEST(dns, all_types_are_asked_for_and_the_shortest_ttl_is_known)
{
    struct zone_entry *e = zone_add("name.test", ns_t_a);

    put_record(e, ns_t_cname, 20, "\4name\4test", 11);
    put_address(e, 1);
    put_address(e, 2);
    put_record(zone_add("name.test", ns_t_aaaa), ns_t_aaaa, 40, &in6addr_loopback, 16);
    ck_assert_int_eq(search("name.test"), 3);
    ck_assert_str_eq(found, "1:1 1:2 28:1 ");
    ck_assert_str_eq(asked, "name.test/1 name.test/28 ");
    ck_assert_int_eq(terms.ttl_ns, 20 * NS_PER_S);
}

TEST(dns, search_domains_come_after_the_name_or_before_by_its_dots)
{
    put_address(zone_add("host.two.test", ns_t_a), 7);
    ck_assert_int_eq(search("host"), 1);
    ck_assert_str_eq(asked, "host.one.test/1 host.one.test/28 host.two.test/1 host.two.test/28 ");
    ck_assert_int_eq(search("host."), -ENOENT);
    ck_assert_str_eq(asked, "host./1 host./28 ");
    put_address(zone_add("a.host.one.test", ns_t_a), 8);
    ck_assert_int_eq(search("a.host"), 1);
    ck_assert_str_eq(asked, "a.host/1 a.host/28 a.host.one.test/1 a.host.one.test/28 ");
}

/* libc reads the options once. */
TEST(dns, the_number_of_dots_is_an_option)
{
    setenv("RES_OPTIONS", "ndots:2", 1);
    put_address(zone_add("a.host.one.test", ns_t_a), 8);
    ck_assert_int_eq(search("a.host"), 1);
    ck_assert_str_eq(asked, "a.host.one.test/1 a.host.one.test/28 ");
    ck_assert_int_eq(search("b.host"), -ENOENT);
    ck_assert_ptr_nonnull(strstr(asked, "b.host.two.test/28 b.host/1 b.host/28 "));
}

TEST(dns, a_silent_name_server_is_asked_once)
{
    zone_fail("name.test", ns_t_a, TRY_AGAIN, ns_r_noerror);
    ck_assert_int_eq(search("name.test"), -EAGAIN);
    ck_assert_str_eq(asked, "name.test/1 ");
}

TEST(dns, a_domain_that_fails_keeps_no_other_from_being_asked)
{
    zone_fail("host.one.test", ns_t_a, TRY_AGAIN, ns_r_servfail);
    ck_assert_int_eq(search("host"), -EREMOTEIO);
    put_address(zone_add("host.two.test", ns_t_a), 7);
    ck_assert_int_eq(search("host"), 1);
}

TEST_EACH(dns, one_type_that_is_found_is_enough, 2)
{
    put_address(zone_add("name.test", ns_t_a), 1);
    zone_fail("name.test", ns_t_aaaa, TRY_AGAIN, _i ? ns_r_servfail : ns_r_noerror);
    ck_assert_int_eq(search("name.test"), 1);
}

TEST(dns, what_cannot_be_read_is_an_error_and_no_record)
{
    struct zone_entry *e = zone_add("name.test", ns_t_a);

    put_address(e, 1);
    put_address(e, 2);
    e->len -= 2;
    ck_assert_int_eq(search("name.test"), -EREMOTEIO);
    ck_assert_str_eq(found, "");
}

TEST(dns, a_time_limit_is_one_attempt_of_that_length)
{
    put_address(zone_add("name.test", ns_t_a), 1);
    setenv("RES_OPTIONS", "timeout:7 attempts:3", 1);
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_int_eq(last_retry, 3);
    ck_assert_int_eq(last_retrans, 7);
    terms.timeout_s = 1;
    ck_assert_int_eq(search("name.test"), 1);
    ck_assert_int_eq(last_retry, 1);
    ck_assert_int_eq(last_retrans, 1);
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

TEST(dns, a_service_of_odd_records_alone_is_none)
{
    struct srv_record out[8];

    PUT_SRV(zone_add("name.test", ns_t_srv), 80, 1, "");
    ck_assert_int_eq(srv_resolve(out, 8, "name.test", &terms), -ENOENT);
}

GROUP(none, NULL, NULL);

TEST(none, without_a_resolver_state_there_is_no_answer)
{
    ck_assert_int_eq(search("name.test"), -ENOSYS);
    ck_assert_str_eq(asked, "");
}
