/*
 * upstream/membership: servers come and go with what a name stands for, and nobody loses one that
 * is used.
 */
#include <errno.h>
#include <string.h>

#include "support/log_lines.h"
#include "support/members.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"

/* ---- sets ---- */

GROUP(membership, members_setup, members_teardown);

TEST(membership, only_literal_addresses_are_servers_before_a_lookup)
{
    members_open_group();
    ck_assert_str_eq(members_names(), "fixed");
}

TEST(membership, each_address_is_a_server_in_the_order_of_the_lines)
{
    members_open_group();
    ck_assert_int_eq(members_update(2, "31"), 1);
    ck_assert_int_eq(members_update(1, "2"), 1);
    ck_assert_str_eq(members_names(),
                     "fixed one@127.0.0.1:1002 two@127.0.0.1:1001 two@127.0.0.1:1003");
}

TEST(membership, sessions_are_spread_over_the_servers_of_a_name)
{
    unsigned n[5] = {0};

    members_open_group();
    ck_assert_int_eq(members_update(1, "1234"), 1);
    for (unsigned i = 0; i < 50; i++) {
        const struct upstream_server *server = members_pick();

        n[server->position == 0 ? 0 : server->name[strlen(server->name) - 1] - '0']++;
    }
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(n[i], 10);
}

TEST(membership, same_addresses_in_another_order_change_nothing)
{
    const struct server_set *set;

    members_open_group();
    ck_assert_int_eq(members_update(1, "123"), 1);
    set = membership_now(&members.upstream->membership);
    ck_assert_int_eq(members_update(1, "312"), 0);
    ck_assert_ptr_eq(membership_now(&members.upstream->membership), set);
}

/* ---- hashes of addresses ---- */

static uint64_t address_hash_of(const char *name)
{
    const struct upstream_server *server = members_find(name);

    ck_assert_ptr_nonnull(server);
    return server->endpoint.address_hash;
}

TEST(membership, hash_of_an_address_does_not_depend_on_the_line)
{
    members_open_group();
    ck_assert_int_eq(members_update(1, "12"), 1);
    ck_assert_int_eq(members_update(2, "21"), 1);
    ck_assert_uint_eq(address_hash_of("one@127.0.0.1:1001"), address_hash_of("two@127.0.0.1:1001"));
    ck_assert_uint_eq(address_hash_of("one@127.0.0.1:1002"), address_hash_of("two@127.0.0.1:1002"));
    ck_assert_uint_ne(address_hash_of("one@127.0.0.1:1001"), address_hash_of("one@127.0.0.1:1002"));
}

TEST(membership, literal_address_and_address_of_a_name_have_the_same_hash)
{
    sockets_loopback(&members.literal, 1003);
    members_open_group();
    ck_assert_int_eq(members_update(1, "3"), 1);
    ck_assert_uint_eq(address_hash_of("fixed"), address_hash_of("one@127.0.0.1:1003"));
}

TEST(membership, hash_of_several_addresses_does_not_depend_on_their_order)
{
    struct address list[3];
    struct membership_place there = {.list = list, .n = 2, .weight = 1},
                            back = {.list = list + 1, .n = 2, .weight = 1};

    members_open_group();
    sockets_loopback(&list[0], 1001);
    sockets_loopback(&list[1], 1002);
    sockets_loopback(&list[2], 1001);
    ck_assert_int_eq(members_update_places(1, &there, 1), 1);
    ck_assert_int_eq(members_update_places(2, &back, 1), 1);
    ck_assert_uint_eq(address_hash_of("one@127.0.0.1:1001"), address_hash_of("two@127.0.0.1:1002"));
}

TEST(membership, name_that_is_one_server_is_hashed_by_the_name_in_lower_case)
{
    struct address at;

    for (unsigned i = 1; i < LINES; i++)
        members.lines[i].names = UPSTREAM_NAME_ONE;
    members.lines[1].address_text = "db.test:1001";
    members.lines[2].address_text = "DB.Test:1001";
    members_open_group();
    ck_assert_uint_eq(address_hash_of("one"), address_hash_of("two"));
    sockets_loopback(&at, 1001);
    ck_assert_int_eq(upstream_set_addresses(members.upstream, members_find("one"), &at, 1), 1);
    ck_assert_uint_eq(address_hash_of("one"), address_hash_of("two"));
}

/* ---- weights ---- */

TEST(membership, changed_weights_and_priorities_apply)
{
    struct address list[2];
    struct membership_place places[2];
    struct upstream_server *server;

    members_open_group();
    for (unsigned i = 0; i < 2; i++) {
        sockets_loopback(&list[i], 1001 + i);
        places[i] = (struct membership_place){.list = &list[i], .n = 1, .weight = 1};
    }
    ck_assert_int_eq(members_update_places(1, places, 2), 1);
    server = members_find("one@127.0.0.1:1002");
    places[1].weight = 6;
    ck_assert_int_eq(members_update_places(1, places, 2), 1);
    ck_assert_ptr_eq(members_find("one@127.0.0.1:1002"), server);
    for (unsigned i = 0; i < 8; i++)
        (void)members_pick();
    ck_assert_uint_eq(endpoint_active(&server->endpoint), 6);
    places[1].level = 3;
    ck_assert_int_eq(members_update_places(1, places, 2), 1);
    ck_assert_int_eq(members_update_places(1, places, 2), 0);
    for (unsigned i = 0; i < 8; i++)
        (void)members_pick();
    ck_assert_uint_eq(endpoint_active(&server->endpoint), 6);
}

TEST(membership, weight_may_change_to_0_and_back)
{
    struct address at;
    struct membership_place place = {.list = &at, .n = 1, .weight = 1};
    struct upstream_server *server;

    members_open_group();
    sockets_loopback(&at, 1001);
    ck_assert_int_eq(members_update_places(1, &place, 1), 1);
    server = members_find("one@127.0.0.1:1001");
    place.weight = 0;
    ck_assert_int_eq(members_update_places(1, &place, 1), 1);
    ck_assert_ptr_eq(members_find("one@127.0.0.1:1001"), server);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(members_pick()->position, 0);
    place.weight = 1;
    ck_assert_int_eq(members_update_places(1, &place, 1), 1);
    for (unsigned i = 0; i < 6; i++)
        (void)members_pick();
    ck_assert_uint_eq(endpoint_active(&server->endpoint), 3);
}

TEST(membership, servers_of_a_line_of_weight_0_get_no_sessions_whatever_their_records_say)
{
    struct address at;
    struct membership_place place = {.list = &at, .n = 1, .weight = 7};

    members.lines[1].weight = 0;
    members_open_group();
    sockets_loopback(&at, 1001);
    ck_assert_int_eq(members_update_places(1, &place, 1), 1);
    ck_assert_int_eq(members_update_places(1, &place, 1), 0);
    ck_assert_ptr_nonnull(members_find("one@127.0.0.1:1001"));
    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_eq(members_pick()->position, 0);
}

/* 0: a host name; 1: a service. */
TEST_EACH(membership, disabled_name_is_one_server_without_an_address, 2)
{
    members.lines[1].names = _i == 0 ? UPSTREAM_NAME_EACH : UPSTREAM_SERVICE;
    members.lines[1].disabled = true;
    members_open_group();
    ck_assert_uint_eq(endpoint_load(&members_find("one")->endpoint), ENDPOINT_ABSENT);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_eq(members_pick()->position, 0);
}

TEST(membership, a_backup_line_has_backups_only)
{
    members.lines[1].backup = true;
    members_open_group();
    ck_assert_int_eq(members_update(1, "12"), 1);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(members_pick()->position, 0);
    endpoint_set_flag(&members_find("fixed")->endpoint, ENDPOINT_DOWN);
    ck_assert_uint_eq(members_pick()->position, 1);
}

TEST(membership, a_line_is_found_by_its_id)
{
    members_open_group();
    ck_assert_str_eq(membership_find_line(&members.upstream->membership, "two")->conf.id, "two");
    ck_assert_ptr_null(membership_find_line(&members.upstream->membership, "tw"));
}

TEST(membership, a_line_that_is_no_longer_configured_changes_nothing)
{
    struct server_line *line;
    struct membership_place place = {.list = &members.literal, .n = 1, .weight = 1};

    members_open_group();
    ck_assert_int_eq(server_line_create(&line, &members.lines[1]), 0);
    ck_assert_int_eq(membership_update(&members.upstream->membership, line, &place, 1, NULL),
                     -ESTALE);
    ck_assert_str_eq(members_names(), "fixed");
    server_line_release(line);
}
