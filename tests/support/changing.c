#include "support/changing.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/until.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

struct changing changing;

void changing_setup(void)
{
    static const char *const ids[SERVERS] = {"a", "b", "c", "d"};

    log_lines_capture(LOG_LEVEL_NOTICE);
    for (unsigned i = 0; i <= SERVERS; i++)
        sockets_loopback(&changing.addresses[i], 1 + i);
    changing.conf = (struct upstream_conf){.name = "back",
                                           .servers = changing.servers,
                                           .n_servers = 2,
                                           .ejection = {.failures = 1,
                                                        .time_ns = UNTIL_LIMIT_NS,
                                                        .time_max_ns = UNTIL_LIMIT_NS,
                                                        .max_percent = 50}};
    for (unsigned i = 0; i < SERVERS; i++)
        changing.servers[i] = (struct upstream_server_conf){.id = ids[i],
                                                            .address_text = "there",
                                                            .addresses = &changing.addresses[i],
                                                            .n_addresses = 1,
                                                            .weight = 1};
}

void changing_open_group(void)
{
    ck_assert_int_eq(upstream_create(&changing.upstream, &changing.conf, NULL), 0);
    memcpy(changing.next_servers, changing.servers, sizeof(changing.servers));
    changing.next = changing.conf;
    changing.next.servers = changing.next_servers;
}

void changing_teardown(void)
{
    upstream_destroy(changing.upstream);
}

void changing_prepare(void)
{
    ck_assert_int_eq(upstream_change_prepare(&changing.change, changing.upstream, &changing.next),
                     0);
}

void changing_change_all(void)
{
    changing_prepare();
    upstream_change_commit(changing.change);
}

struct membership *changing_members(void)
{
    return &changing.upstream->membership;
}

struct upstream_server *changing_server_at(unsigned i)
{
    return membership_now(changing_members())->servers[i];
}

const char *changing_names(void)
{
    static char text[512];
    const struct server_set *set = membership_now(changing_members());
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < set->n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "",
                                set->servers[i]->name);
    return text;
}

unsigned changing_remembered(void)
{
    unsigned n = 0;

    (void)membership_sweep(changing_members());
    list_for_each (node, &changing_members()->servers)
        n++;
    return n;
}

struct upstream_server *changing_pick(int error)
{
    struct balancer_pick_state state;
    struct upstream_server *server;
    int rc;

    balancer_begin(&state, 0);
    rc = upstream_pick(changing.upstream, &state, &server);
    ck_assert_int_eq(rc, error);
    return rc == 0 ? server : NULL;
}

uint32_t changing_load(const struct upstream_server *server)
{
    return endpoint_load(&server->endpoint);
}

int changing_give_places(const char *id, const char *text)
{
    struct address list[10];
    struct membership_place places[10];
    unsigned n = 0;
    int rc;

    for (; text[n] != '\0'; n++) {
        sockets_loopback(&list[n], 1000 + (unsigned)(text[n] - '0'));
        places[n] = (struct membership_place){.list = &list[n], .n = 1, .weight = 3};
    }
    rc = upstream_change_places(changing.change, upstream_change_line(changing.change, id), places,
                                n);
    return rc == 0 ? upstream_change_build(changing.change) : rc;
}

void changing_on_changed(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    ck_assert_str_eq(server->name, "a");
    ck_assert_uint_eq(server->conf->check_port, 99);
    changing.n_changed++;
}
