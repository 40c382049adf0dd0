#include "support/grouped.h"

#include <check.h>

#include "base/clock.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "upstream/upstream.h"

struct grouped grouped;

struct upstream_server *grouped_server_at(unsigned i)
{
    return membership_now(&grouped.upstream->membership)->servers[i];
}

void grouped_setup(void)
{
    static const char *const ids[SERVERS] = {"a", "b", "c", "d"};

    log_lines_capture(LOG_LEVEL_INFO);
    sockets_loopback(&grouped.address, 7);
    grouped.conf = (struct upstream_conf){.name = "back",
                                          .servers = grouped.servers,
                                          .ejection = {.failures = 3,
                                                       .time_ns = 200 * NS_PER_MS,
                                                       .time_max_ns = 60 * NS_PER_S,
                                                       .max_percent = 50}};
    for (unsigned i = 0; i < SERVERS; i++)
        grouped.servers[i] = (struct upstream_server_conf){.id = ids[i],
                                                           .address_text = "there",
                                                           .addresses = &grouped.address,
                                                           .n_addresses = 1,
                                                           .weight = 1};
}

void grouped_open_group(unsigned n)
{
    grouped.conf.n_servers = n;
    ck_assert_int_eq(upstream_create(&grouped.upstream, &grouped.conf, NULL), 0);
}

void grouped_teardown(void)
{
    upstream_destroy(grouped.upstream);
}

uint32_t grouped_active(unsigned i)
{
    return endpoint_active(&grouped_server_at(i)->endpoint);
}

uint32_t grouped_active_in_all(void)
{
    return atomic_load(&grouped.upstream->group.load);
}

struct upstream_server *grouped_pick(int error)
{
    struct upstream_server *server;
    struct balancer_pick_state pick;
    int rc;

    balancer_begin(&pick, 1);
    rc = upstream_pick(grouped.upstream, &pick, &server);
    ck_assert_int_eq(rc, error);
    return rc == 0 ? server : NULL;
}

void grouped_visit(unsigned i, enum upstream_outcome outcome)
{
    ck_assert_int_eq(endpoint_enter(&grouped_server_at(i)->endpoint), 0);
    upstream_leave(grouped.upstream, grouped_server_at(i), outcome);
}

bool grouped_is_out(unsigned i)
{
    return (endpoint_load(&grouped_server_at(i)->endpoint) & ENDPOINT_EJECTED) != 0;
}
