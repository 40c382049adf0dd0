/* upstream/route: which upstream a client leads to, and how many bytes it takes to know. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "upstream/route.h"
#include "upstream/upstream.h"

#define UPSTREAMS 8

static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf confs[UPSTREAMS];
static struct upstream *upstreams[UPSTREAMS];
static struct route_table *table;

/* In this order; their upstreams are named 0, 1 ... */
static const char *x[] = {"x.example"}, *wild[] = {"*.example", "*.a.example"},
                  *two[] = {"a.example", "b"}, *h2[] = {"h2"}, *sql[] = {"postgresql", "redis"};
static const struct route_conf routes[] = {
    {.id = "any", .protocols = sql, .n_protocols = 2},
    {.id = "wild", .names = wild, .n_names = 2},
    {.id = "x_h2", .names = x, .n_names = 1, .protocols = h2, .n_protocols = 1},
    {.id = "x", .names = x, .n_names = 1},
    {.id = "x_sql", .names = x, .n_names = 1, .protocols = sql, .n_protocols = 2},
    {.id = "two", .names = two, .n_names = 2},
    {.id = "b_sql", .names = two + 1, .n_names = 1, .protocols = sql, .n_protocols = 2},
};

static void setup(void)
{
    static const char names[UPSTREAMS][2] = {"0", "1", "2", "3", "4", "5", "6", "7"};

    sockets_loopback(&address, 9);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        confs[i] =
            (struct upstream_conf){.name = names[i], .servers = &server_conf, .n_servers = 1};
        ck_assert_int_eq(upstream_create(&upstreams[i], &confs[i], NULL), 0);
    }
    ck_assert_int_eq(route_table_create(&table, routes, ARRAY_LEN(routes), upstreams), 0);
}

static void teardown(void)
{
    route_table_destroy(table);
    for (unsigned i = 0; i < UPSTREAMS; i++)
        upstream_destroy(upstreams[i]);
}

/* ${protocols}: as in the extension. */
static const struct {
    const char *sni, *protocols, *id; /* NULL: no route */
} clients[] = {
    {"x.example", "", "x"},
    {"x.example", "\2h2", "x_h2"},
    {"x.example", "\1a\2h2", "x_h2"},
    {"x.example", "\3h2x", "x"},
    {"x.example", "\5redis", "x"}, /* x comes first */
    {"y.example", "\2h2", "wild"},
    {"y.a.example", "", "wild"},
    {"y.example", "\5redis", "wild"}, /* a name comes before none */
    {"y.b.example", "\5redis", "any"},
    {"a.example", "", "two"}, /* exact before wildcard */
    {"b", "\5redis", "two"},
    {"example", "\12postgresql", "any"},
    {"", "\2h2\5redis", "any"},
    {"", "", NULL},
    {"", "\2h2", NULL},
    {"c", "", NULL},
    {"w", "", NULL},
    {"zz.b.example", "", NULL},
};

/* The ID of the route, whose upstream is as it should be; NULL: none. */
static const char *found(const struct route_table *t, const char *sni,
                         struct client_hello_bytes alpn)
{
    const struct route_client client = {.address = &address,
                                        .hello = ROUTE_HELLO_READ,
                                        .sni = sni,
                                        .alpn = alpn,
                                        .is_complete = true};
    struct route_choice choice;

    ck_assert_int_eq(route_table_find(t, &client, &choice), 0);
    if (choice.id)
        ck_assert_str_eq(routes[choice.upstream->name[0] - '0'].id, choice.id);
    return choice.id;
}

GROUP(table_of_routes, setup, teardown);

TEST_EACH(table_of_routes, most_specific_name_decides_before_the_order, ARRAY_LEN(clients))
{
    struct client_hello_bytes alpn = {(const uint8_t *)clients[_i].protocols,
                                      strlen(clients[_i].protocols)};

    ck_assert_pstr_eq(found(table, clients[_i].sni, alpn), clients[_i].id);
}

TEST(table_of_routes, lookup_of_a_name_of_maximum_length_stays_in_bounds)
{
    char name[SERVER_NAME_BYTES];

    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert_ptr_null(found(table, name, (struct client_hello_bytes){NULL, 0}));
    name[0] = '.'; /* no name, but the longest parent */
    ck_assert_ptr_null(found(table, name, (struct client_hello_bytes){NULL, 0}));
}

/* ---- conditions beside the name ---- */

#define BYTES(text)                               \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static struct cidr office = {.len = 4, .bits = 8, .host = {10}};
static struct cidr guests = {.len = 4, .bits = 8, .host = {172}};
static struct route_first ssh[] = {BYTES("SSH-")}, http[] = {BYTES("GET "), BYTES("POST ")},
                          record[] = {BYTES("\x16\x03\x01")};
static const struct route_conf conditions[] = {
    {.id = "named", .names = x, .n_names = 1, .clients = {&office, 1}},
    {.id = "ssh", .first = ssh, .n_first = 1},
    {.id = "guest_http", .first = http, .n_first = 2, .clients = {&guests, 1}},
    {.id = "office_plain", .tls = ROUTE_TLS_NO, .clients = {&office, 1}},
    {.id = "new", .tls = ROUTE_TLS_1_3, .protocols = h2, .n_protocols = 1},
    {.id = "old", .tls = ROUTE_TLS_1_2 | ROUTE_TLS_NO},
    {.id = "guest", .clients = {&guests, 1}},
    {.id = "record", .first = record, .n_first = 1, .clients = {&office, 1}},
};

static void setup_conditions(void)
{
    static const char names[UPSTREAMS][2] = {"0", "1", "2", "3", "4", "5", "6", "7"};

    sockets_loopback(&address, 9);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        confs[i] =
            (struct upstream_conf){.name = names[i], .servers = &server_conf, .n_servers = 1};
        ck_assert_int_eq(upstream_create(&upstreams[i], &confs[i], NULL), 0);
    }
    ck_assert_int_eq(route_table_create(&table, conditions, ARRAY_LEN(conditions), upstreams), 0);
}

#define WAIT "wait"

/* ${from}: the first byte of the client's address; ${id}: WAIT for -EAGAIN. */
static const struct {
    uint8_t from;
    struct route_first first;
    enum route_hello hello;
    const char *sni, *protocols;
    unsigned tls;
    bool is_complete;
    const char *id;
} asking[] = {
    /* nothing was received */
    {127, BYTES(""), ROUTE_HELLO_UNKNOWN, "", "", 0, false, WAIT},
    /* each byte decides as soon as it can */
    {127, BYTES("S"), ROUTE_HELLO_NONE, "", "", 0, false, WAIT},
    {127, BYTES("SSH"), ROUTE_HELLO_NONE, "", "", 0, false, WAIT},
    {127, BYTES("SSH-"), ROUTE_HELLO_NONE, "", "", 0, false, "ssh"},
    {127, BYTES("SSH-2"), ROUTE_HELLO_NONE, "", "", 0, false, "ssh"},
    {127, BYTES("SSx"), ROUTE_HELLO_NONE, "", "", 0, false, "old"},
    {127, BYTES("SSH"), ROUTE_HELLO_NONE, "", "", 0, true, "old"},
    {172, BYTES("G"), ROUTE_HELLO_NONE, "", "", 0, false, WAIT},
    {172, BYTES("POST "), ROUTE_HELLO_NONE, "", "", 0, false, "guest_http"},
    {172, BYTES("PUT "), ROUTE_HELLO_NONE, "", "", 0, false, "old"},
    {10, BYTES("G"), ROUTE_HELLO_NONE, "", "", 0, false, "office_plain"},
    /* TLS: a name may follow for the office, a version for others */
    {10, BYTES("\x16\x03"), ROUTE_HELLO_PART, "", "", 0, false, WAIT},
    {127, BYTES("\x16\x03"), ROUTE_HELLO_PART, "", "", 0, false, WAIT},
    {10, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, "x.example", "", ROUTE_TLS_1_3, true, "named"},
    {127, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, "x.example", "", ROUTE_TLS_1_3, true, NULL},
    {127, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, "", "\2h2", ROUTE_TLS_1_3, true, "new"},
    {127, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, "", "\2h2", ROUTE_TLS_1_2, true, "old"},
    {127, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, "", "\2h2", 0, true, NULL},
    {172, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, "", "", 0, true, "guest"},
    {10, BYTES("\x16\x03\x01"), ROUTE_HELLO_READ, "y.example", "", 0, true, "record"},
    {10, BYTES("\x16\x03\x03"), ROUTE_HELLO_READ, "y.example", "", 0, true, NULL},
};

GROUP(table_of_conditions, setup_conditions, teardown);

TEST_EACH(table_of_conditions, all_conditions_of_a_route_hold_as_soon_as_the_bytes_decide,
          ARRAY_LEN(asking))
{
    struct address from[2];
    const struct route_client client = {
        .address = from,
        .first = asking[_i].first,
        .hello = asking[_i].hello,
        .sni = asking[_i].sni,
        .alpn = {(const uint8_t *)asking[_i].protocols, strlen(asking[_i].protocols)},
        .tls = asking[_i].tls,
        .is_complete = asking[_i].is_complete};
    struct route_choice choice;
    char text[32];
    int rc;

    snprintf(text, sizeof(text), "%u.0.0.1:9", asking[_i].from);
    ck_assert_int_eq(address_parse(from, 2, text), 1);
    rc = route_table_find(table, &client, &choice);
    if (asking[_i].id && strcmp(asking[_i].id, WAIT) == 0) {
        ck_assert_int_eq(rc, -EAGAIN);
        return;
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_pstr_eq(choice.id, asking[_i].id);
    if (choice.id)
        ck_assert_str_eq(conditions[choice.upstream->name[0] - '0'].id, choice.id);
}

/* Blocks and bytes that share beginnings, of every length, for routes and for clients. */
static const char *const blocks[] = {"0.0.0.0/0",
                                     "10.0.0.0/8",
                                     "10.1.0.0/16",
                                     "10.1.2.3",
                                     "11.0.0.0/8",
                                     "unix",
                                     "::/0",
                                     "a00::/8",
                                     "a01:200::/24",
                                     "a01:203::1",
                                     "a01:203::/64",
                                     "a01:203::/65",
                                     "a01:203:0:0:8000::/65"};
static const char *const places[] = {"10.1.2.3:9",
                                     "10.1.2.4:9",
                                     "10.2.0.0:9",
                                     "11.0.0.1:9",
                                     "127.0.0.1:9",
                                     "[a01:203::1]:9",
                                     "/p",
                                     "[a01:203::2]:9",
                                     "[a01:203:0:0:8000::1]:9",
                                     "[::ffff:10.1.2.3]:9"};
static struct route_first beginnings[] = {BYTES("A"),         BYTES("AB"),
                                          BYTES("AC"),        BYTES("ABCDEFGH"),
                                          BYTES("ABCDEFGHI"), BYTES("ABCDEFGHK")};
static const struct route_first sent[] = {BYTES(""),          BYTES("A"),  BYTES("ABCDEFG"),
                                          BYTES("ABCDEFGHI"), BYTES("AD"), BYTES("ACCDEFGHI")};

static bool begins(const struct route_first *whole, const struct route_first *begin)
{
    return whole->n >= begin->n && memcmp(whole->at, begin->at, begin->n) == 0;
}

/* Each pair of values of a route, with each client. */
TEST(table_of_conditions, a_route_holds_for_what_any_of_its_values_holds_for)
{
    struct cidr near[2];
    struct route_first first[2];
    const struct route_conf conf = {.id = "r", .clients = {near, 2}, .first = first, .n_first = 2};
    struct route_table *one;

    for (unsigned i = 0; i < ARRAY_LEN(blocks) * ARRAY_LEN(blocks); i++)
        for (unsigned j = 0; j < ARRAY_LEN(beginnings) * ARRAY_LEN(beginnings); j++) {
            ck_assert_int_eq(cidr_parse(&near[0], blocks[i % ARRAY_LEN(blocks)]), 0);
            ck_assert_int_eq(cidr_parse(&near[1], blocks[i / ARRAY_LEN(blocks)]), 0);
            first[0] = beginnings[j % ARRAY_LEN(beginnings)];
            first[1] = beginnings[j / ARRAY_LEN(beginnings)];
            ck_assert_int_eq(route_table_create(&one, &conf, 1, upstreams), 0);
            for (unsigned k = 0; k < ARRAY_LEN(places) * ARRAY_LEN(sent); k++) {
                const struct route_first *got = &sent[k / ARRAY_LEN(places)];
                struct address from[2];
                const struct route_client client = {
                    .address = from, .first = *got, .hello = ROUTE_HELLO_NONE, .is_complete = true};
                struct route_choice choice;

                ck_assert_int_eq(address_parse(from, 2, places[k % ARRAY_LEN(places)]), 1);
                ck_assert_int_eq(route_table_find(one, &client, &choice), 0);
                ck_assert_int_eq(choice.id != NULL,
                                 cidr_any_has(near, 2, from) &&
                                     (begins(got, &first[0]) || begins(got, &first[1])));
            }
            route_table_destroy(one);
        }
}

TEST(table_of_conditions, a_table_says_what_it_asks_of_a_client)
{
    struct route_table *other;

    ck_assert(route_table_needs_hello(table));
    ck_assert(!route_table_needs_tls(table));
    ck_assert_int_eq(route_table_create(&other, routes, ARRAY_LEN(routes), upstreams), 0);
    ck_assert(route_table_needs_hello(other));
    ck_assert(route_table_needs_tls(other));
    route_table_destroy(other);
    ck_assert_int_eq(route_table_create(&other, conditions + 1, 3, upstreams), 0);
    ck_assert(!route_table_needs_hello(other));
    ck_assert(!route_table_needs_tls(other));
    route_table_destroy(other);
}

TEST(table_of_conditions, a_route_without_an_upstream_refuses)
{
    static const struct route_conf refuses = {.id = "no", .clients = {&guests, 1}};
    struct upstream *none = NULL;
    struct route_table *other;
    struct address from[2];
    const struct route_client client = {.address = from, .hello = ROUTE_HELLO_UNKNOWN, .sni = ""};
    struct route_choice choice;

    ck_assert_int_eq(address_parse(from, 2, "172.1.2.3:9"), 1);
    ck_assert_int_eq(route_table_create(&other, &refuses, 1, &none), 0);
    ck_assert_int_eq(route_table_find(other, &client, &choice), 0);
    ck_assert_str_eq(choice.id, "no");
    ck_assert_ptr_null(choice.upstream);
    route_table_destroy(other);
}

/* Of 20,000 clients each upstream gets its share, and each client the same one
 * in a new table. */
TEST(table_of_conditions, clients_are_split_by_share_and_each_stays_where_it_is)
{
    struct route_share shares[] = {{"0", 7000}, {"1", 9950}, {"2", ROUTE_SHARE_ALL}};
    const struct route_conf split = {
        .id = "split", .tls = ROUTE_TLS_NO, .shares = shares, .n_shares = 3, .upstream = "0"};
    struct route_client client = {.address = &address, .hello = ROUTE_HELLO_NONE, .sni = ""};
    struct route_table *one, *other;
    unsigned got[3] = {0};

    ck_assert(!route_table_has_shares(table));
    ck_assert_int_eq(route_table_create(&one, &split, 1, upstreams), 0);
    ck_assert_int_eq(route_table_create(&other, &split, 1, upstreams), 0);
    ck_assert(route_table_has_shares(one));
    for (unsigned i = 0; i < 20000; i++) {
        struct route_choice choice, again;

        client.key = hash_stable(&i, sizeof(i));
        ck_assert_int_eq(route_table_find(one, &client, &choice), 0);
        ck_assert_int_eq(route_table_find(other, &client, &again), 0);
        ck_assert_ptr_eq(choice.upstream, again.upstream);
        got[choice.upstream->name[0] - '0']++;
    }
    ck_assert_uint_gt(got[0], 13700);
    ck_assert_uint_lt(got[0], 14300);
    ck_assert_uint_gt(got[2], 50);
    ck_assert_uint_lt(got[2], 160);
    route_table_destroy(one);
    route_table_destroy(other);
}

/* The highest version that is offered, whatever the order, without GREASE. */
TEST(table_of_conditions, version_of_a_hello_is_the_highest_that_it_offers)
{
    static const struct {
        uint16_t legacy;
        struct client_hello_bytes versions;
        unsigned tls;
    } hellos[] = {
        {0x303, {NULL, 0}, ROUTE_TLS_1_2},
        {0x302, {NULL, 0}, 0},
        {0x303, {(const uint8_t *)"\x3\x3\x3\x4", 4}, ROUTE_TLS_1_3},
        {0x303, {(const uint8_t *)"\xaa\xaa\x3\x3", 4}, ROUTE_TLS_1_2},
        {0x303, {(const uint8_t *)"\x3\x2", 2}, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
        const struct client_hello hello = {.version = hellos[i].legacy,
                                           .versions = hellos[i].versions};

        ck_assert_uint_eq(route_tls_of(&hello), hellos[i].tls);
    }
}
