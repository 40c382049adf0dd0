#include "support/members.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/until.h"
#include "upstream/upstream.h"

struct members members;

void members_setup(void)
{
    static const char *const ids[LINES] = {"fixed", "one", "two"};

    log_lines_capture(LOG_LEVEL_NOTICE);
    sockets_loopback(&members.literal, 7);
    members.conf = (struct upstream_conf){.name = "back",
                                          .servers = members.lines,
                                          .n_servers = LINES,
                                          .queue_length = 10,
                                          .queue_timeout_ns = UNTIL_LIMIT_NS,
                                          .ejection = {.failures = 1,
                                                       .time_ns = UNTIL_LIMIT_NS,
                                                       .time_max_ns = UNTIL_LIMIT_NS,
                                                       .max_percent = 50}};
    for (unsigned i = 0; i < LINES; i++)
        members.lines[i] = (struct upstream_server_conf){
            .id = ids[i], .address_text = "there", .names = UPSTREAM_NAME_EACH, .weight = 1};
    members.lines[0].names = UPSTREAM_LITERAL;
    members.lines[0].addresses = &members.literal;
    members.lines[0].n_addresses = 1;
}

void members_open_group(void)
{
    ck_assert_int_eq(upstream_create(&members.upstream, &members.conf, &members.env), 0);
}

void members_teardown(void)
{
    upstream_destroy(members.upstream);
}

int members_update_places(unsigned line, const struct membership_place *places, unsigned n)
{
    struct membership *m = &members.upstream->membership;

    return membership_update(m, m->lines[line], places, n, NULL);
}

int members_update(unsigned line, const char *text)
{
    struct address list[10];
    struct membership_place places[10];
    unsigned n = 0;

    for (; text[n] != '\0'; n++) {
        sockets_loopback(&list[n], 1000 + (unsigned)(text[n] - '0'));
        places[n] = (struct membership_place){.list = &list[n], .n = 1, .weight = 1};
    }
    return members_update_places(line, places, n);
}

const char *members_names(void)
{
    static char text[512];
    const struct server_set *set = membership_now(&members.upstream->membership);
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < set->n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "",
                                set->servers[i]->name);
    return text;
}

struct upstream_server *members_find(const char *name)
{
    const struct server_set *set = membership_now(&members.upstream->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (strcmp(set->servers[i]->name, name) == 0)
            return set->servers[i];
    return NULL;
}

struct upstream_server *members_pick(void)
{
    struct balancer_pick_state pick;
    struct upstream_server *server = NULL;

    balancer_begin(&pick, 0);
    ck_assert_int_eq(upstream_pick(members.upstream, &pick, &server), 0);
    return server;
}
