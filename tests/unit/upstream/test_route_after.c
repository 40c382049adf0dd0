/* upstream/route: which upstream a client that sends nothing leads to, and when. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "upstream/route.h"
#include "upstream/upstream.h"

#define BYTES(text)                               \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }
#define WAIT "wait"
#define MS   NS_PER_MS

static const char *x[] = {"x.example"};
static struct cidr office = {.len = 4, .bits = 8, .host = {10}};
static struct cidr guests = {.len = 4, .bits = 8, .host = {172}};
static struct route_first ssh[] = {BYTES("SSH-")};
static const struct route_conf silences[] = {
    {.id = "named", .names = x, .n_names = 1},
    {.id = "late", .after_ns = 900 * MS},
    {.id = "ssh", .first = ssh, .n_first = 1},
    {.id = "plain", .tls = ROUTE_TLS_NO},
    {.id = "guest", .clients = {&guests, 1}},
    {.id = "office", .after_ns = 300 * MS, .clients = {&office, 1}},
    {.id = "soon", .after_ns = 500 * MS},
};

static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static const struct upstream_conf up_conf = {.name = "up", .servers = &server_conf, .n_servers = 1};
static struct upstream *up;
static struct route_table *table;

static void setup(void)
{
    struct upstream *upstreams[ARRAY_LEN(silences)];

    sockets_loopback(&address, 9);
    ck_assert_int_eq(upstream_create(&up, &up_conf, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(silences); i++)
        upstreams[i] = up;
    ck_assert_int_eq(route_table_create(&table, silences, ARRAY_LEN(silences), upstreams), 0);
}

static void teardown(void)
{
    route_table_destroy(table);
    upstream_destroy(up);
}

/* ${from}: the first byte of the client's address; ${id}: WAIT for -EAGAIN. */
static const struct {
    uint8_t from;
    int64_t silent_ns;
    struct route_first first;
    enum route_hello hello;
    bool is_complete;
    const char *id;
} silent[] = {
    {127, 0, BYTES(""), ROUTE_HELLO_UNKNOWN, false, WAIT},
    {127, 300 * MS, BYTES(""), ROUTE_HELLO_UNKNOWN, false, WAIT},
    {127, 499 * MS, BYTES(""), ROUTE_HELLO_UNKNOWN, false, WAIT},
    {127, 500 * MS, BYTES(""), ROUTE_HELLO_UNKNOWN, false, "soon"},
    {10, 299 * MS, BYTES(""), ROUTE_HELLO_UNKNOWN, false, WAIT},
    {10, 300 * MS, BYTES(""), ROUTE_HELLO_UNKNOWN, false, "office"},
    /* no route waits any more: the first one that holds */
    {172, 0, BYTES(""), ROUTE_HELLO_UNKNOWN, false, WAIT},
    {172, 500 * MS, BYTES(""), ROUTE_HELLO_UNKNOWN, false, "guest"},
    /* the end of the stream, before any byte */
    {127, 500 * MS, BYTES(""), ROUTE_HELLO_UNKNOWN, true, "soon"},
    /* the client speaks */
    {127, 0, BYTES("S"), ROUTE_HELLO_NONE, false, WAIT},
    {127, 0, BYTES("SSH-"), ROUTE_HELLO_NONE, false, "ssh"},
    {127, 0, BYTES("G"), ROUTE_HELLO_NONE, false, "plain"},
    {127, 0, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, true, NULL},
    {172, 0, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, true, "guest"},
    /* a hello that the listener's own TLS has read */
    {127, 0, BYTES(""), ROUTE_HELLO_READ, true, NULL},
};

GROUP(table_of_silences, setup, teardown);

TEST_EACH(table_of_silences, silent_client_gets_no_route_that_waits_for_bytes, ARRAY_LEN(silent))
{
    struct address from[2];
    const struct route_client client = {.address = from,
                                        .first = silent[_i].first,
                                        .hello = silent[_i].hello,
                                        .sni = "",
                                        .silent_ns = silent[_i].silent_ns,
                                        .is_complete = silent[_i].is_complete};
    struct route_choice choice;
    char text[32];
    int rc;

    snprintf(text, sizeof(text), "%u.0.0.1:9", silent[_i].from);
    ck_assert_int_eq(address_parse(from, 2, text), 1);
    rc = route_table_find(table, &client, &choice);
    if (silent[_i].id && strcmp(silent[_i].id, WAIT) == 0) {
        ck_assert_int_eq(rc, -EAGAIN);
        return;
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_pstr_eq(choice.id, silent[_i].id);
}

TEST(table_of_silences, times_are_told_in_their_order)
{
    static const int64_t times[] = {0, 300 * MS, 500 * MS, 900 * MS, 0};

    for (size_t i = 0; i + 1 < ARRAY_LEN(times); i++)
        ck_assert_int_eq(route_table_next_after_ns(table, times[i]), times[i + 1]);
    ck_assert_int_eq(route_table_next_after_ns(table, 301 * MS), 500 * MS);
    ck_assert(!route_table_needs_tls(table));
}
