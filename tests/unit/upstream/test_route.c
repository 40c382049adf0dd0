/* upstream/route: which upstream a name and protocols lead to. */
#include <string.h>

#include "support/suite.h"
#include "support/sockets.h"
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

GROUP(table_of_routes, setup, teardown);

TEST_EACH(table_of_routes, most_specific_name_decides_before_the_order, ARRAY_LEN(clients))
{
    struct client_hello_bytes alpn = {(const uint8_t *)clients[_i].protocols,
                                      strlen(clients[_i].protocols)};
    struct upstream *up = route_table_find(table, clients[_i].sni, alpn);
    const char *id = up ? routes[up->name[0] - '0'].id : NULL;

    ck_assert_pstr_eq(id, clients[_i].id);
}

TEST(table_of_routes, lookup_of_a_name_of_maximum_length_stays_in_bounds)
{
    char name[SERVER_NAME_BYTES];

    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ck_assert_ptr_null(route_table_find(table, name, (struct client_hello_bytes){NULL, 0}));
    name[0] = '.'; /* no name, but the longest parent */
    ck_assert_ptr_null(route_table_find(table, name, (struct client_hello_bytes){NULL, 0}));
}
