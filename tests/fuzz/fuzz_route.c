/*
 * Fuzz upstream/route with the bytes of a client: the first bytes that decide choose the same route
 * as all bytes, and all bytes always decide.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "net/address.h"
#include "tls/client_hello.h"
#include "upstream/route.h"

#define STEPS 64 /* not each length, so that long inputs stay quick */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *names[] = {"a.example", "*.example"}, *protocols[] = {"h2", "postgresql"};
static struct cidr blocks[] = {{.len = 4, .bits = 8, .host = {10}}, {.len = 0}};
static struct route_first ssh[] = {{(const uint8_t *)"SSH-", 4}, {(const uint8_t *)"EHLO ", 5}};
static struct route_first record[] = {{(const uint8_t *)"\x16\x03\x01", 3}};
static const struct route_conf routes[] = {
    {.id = "named", .names = names, .n_names = 2, .protocols = protocols, .n_protocols = 1},
    {.id = "inner", .names = names, .n_names = 1, .clients = {blocks, 1}, .tls = ROUTE_TLS_1_3},
    {.id = "first", .first = ssh, .n_first = 2},
    {.id = "alpn", .protocols = protocols + 1, .n_protocols = 1, .tls = ROUTE_TLS_1_2},
    {.id = "record", .first = record, .n_first = 1, .clients = {blocks, 1}},
    {.id = "plain", .tls = ROUTE_TLS_NO, .clients = {blocks, 2}},
    {.id = "new", .tls = ROUTE_TLS_1_3},
    {.id = "unix", .clients = {blocks + 1, 1}},
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

/* As service/session_hello asks; -EPROTO: the hello is broken. */
static int ask(const struct route_table *t, const struct address *from, const uint8_t *data,
               size_t len, bool is_complete, const char **id)
{
    struct route_client client = {
        .address = from, .first = {data, len}, .sni = "", .is_complete = is_complete};
    struct client_hello_scan scan = {0};
    struct client_hello hello;
    struct route_choice choice;
    int found, rc = client_hello_scan(&scan, data, len);

    if (rc > 0)
        rc = client_hello_read(&hello, &scan, data);
    if (rc < 0 && rc != -EAGAIN && rc != -ENOMSG)
        return -EPROTO;
    client.hello = rc == 0         ? ROUTE_HELLO_READ
                   : rc == -ENOMSG ? ROUTE_HELLO_NONE
                   : len > 1       ? ROUTE_HELLO_PART
                   : is_complete   ? ROUTE_HELLO_NONE
                                   : ROUTE_HELLO_UNKNOWN;
    if (client.hello == ROUTE_HELLO_PART && is_complete)
        return -EPROTO;
    if (rc == 0) {
        client.sni = hello.sni;
        client.alpn = hello.alpn;
        client.tls = route_tls_of(&hello);
        client.is_complete = true;
    }
    MUST(route_table_needs_hello(t) && !route_table_needs_tls(t));
    found = route_table_find(t, &client, &choice);
    MUST(found == 0 || (found == -EAGAIN && !client.is_complete));
    *id = found == 0 ? choice.id : NULL;
    if (rc == 0)
        client_hello_free(&hello);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const clients[] = {"10.0.0.1:1", "192.0.2.1:1", "[::1]:1", "/run/x"};
    struct upstream *none[ROUTES] = {NULL};
    const char *chosen, *last;
    struct route_table *t;
    struct address from[2];
    size_t step = size / STEPS + 1;
    int rc = -EAGAIN;

    if (size == 0)
        return 0;
    MUST(address_parse(from, 2, clients[data[0] % 4]) == 1);
    data++;
    size--;
    MUST(route_table_create(&t, routes, ROUTES, none) == 0);
    for (size_t len = 0; rc == -EAGAIN && len < size; len += step)
        rc = ask(t, from, data, len, false, &chosen);
    if (rc == 0) {
        rc = ask(t, from, data, size, true, &last);
        MUST(rc == -EPROTO || (rc == 0 && chosen == last));
    } else {
        MUST(ask(t, from, data, size, true, &last) != -EAGAIN);
    }
    route_table_destroy(t);
    return 0;
}
