/* upstream/upstream_change: the servers of host names and services in another configuration. */
#include <errno.h>

#include "support/changing.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

/* The servers of ${id} are at these ports, a digit each. */
static int update(const char *id, const char *text)
{
    struct address list[10];
    struct membership_place places[10];
    unsigned n = 0;

    for (; text[n] != '\0'; n++) {
        sockets_loopback(&list[n], 1000 + (unsigned)(text[n] - '0'));
        places[n] = (struct membership_place){.list = &list[n], .n = 1, .weight = 3};
    }
    return membership_update(changing_members(), membership_find_line(changing_members(), id),
                             places, n, NULL);
}

GROUP(change, changing_setup, changing_teardown);

/* ---- names ---- */

TEST(change, unchanged_name_keeps_its_servers)
{
    struct upstream_server *one;

    changing.servers[1].names = UPSTREAM_NAME_EACH;
    changing_open_group();
    ck_assert_int_eq(update("b", "12"), 1);
    one = changing_server_at(1);
    changing.next_servers[1].weight = 7;
    changing_change_all();
    ck_assert_str_eq(changing_names(), "a b@127.0.0.1:1001 b@127.0.0.1:1002");
    ck_assert_ptr_eq(changing_server_at(1), one);
    ck_assert_uint_eq(atomic_load(&one->endpoint.weight), 7);
    ck_assert_int_eq(update("b", "23"), 1);
    ck_assert_str_eq(changing_names(), "a b@127.0.0.1:1002 b@127.0.0.1:1003");
}

TEST(change, the_servers_of_a_service_keep_their_weights)
{
    changing.servers[1].names = UPSTREAM_SERVICE;
    changing_open_group();
    ck_assert_int_eq(update("b", "1"), 1);
    changing.next_servers[1].max_connections = 9;
    changing_change_all();
    ck_assert_uint_eq(atomic_load(&changing_server_at(1)->endpoint.weight), 3);
    ck_assert_uint_eq(atomic_load(&changing_server_at(1)->endpoint.max_connections), 9);
}

TEST(change, changed_name_has_no_servers_until_it_is_resolved)
{
    changing.servers[1].names = UPSTREAM_NAME_EACH;
    changing_open_group();
    ck_assert_int_eq(update("b", "12"), 1);
    changing.next_servers[1].address_text = "elsewhere";
    changing_change_all();
    ck_assert_str_eq(changing_names(), "a");
    ck_assert_int_eq(update("b", "3"), 1);
    ck_assert_str_eq(changing_names(), "a b@127.0.0.1:1003");
}

TEST(change, servers_of_a_changed_name_are_found_again_by_address)
{
    struct upstream_server *one;

    changing.servers[1].names = UPSTREAM_NAME_EACH;
    changing_open_group();
    ck_assert_int_eq(update("b", "12"), 1);
    one = changing_server_at(1);
    changing.next_servers[1].address_text = "elsewhere";
    changing_prepare();
    ck_assert_int_eq(changing_give_places("b", "31"), 0);
    ck_assert_int_eq(changing_give_places("b", "4"), 0); /* it has some now */
    upstream_change_commit(changing.change);
    ck_assert_str_eq(changing_names(), "a b@127.0.0.1:1001 b@127.0.0.1:1003");
    ck_assert_ptr_eq(changing_server_at(1), one);
    ck_assert_str_eq(one->conf->address_text, "elsewhere");
    ck_assert_uint_eq(changing_remembered(), 3);
}

TEST(change, single_server_of_a_name_keeps_its_addresses)
{
    struct upstream_server *b;

    changing.servers[1].names = UPSTREAM_NAME_ONE;
    changing.servers[1].n_addresses = 0;
    changing_open_group();
    b = changing_server_at(1);
    ck_assert_int_eq(upstream_set_addresses(changing.upstream, b, &changing.addresses[1], 1), 1);
    changing.next_servers[1].max_connections = 3;
    changing_change_all();
    ck_assert_ptr_eq(changing_server_at(1), b);
    ck_assert_uint_eq(changing_load(b), 0);
}

TEST(change, single_server_of_a_new_name_may_start_with_addresses)
{
    changing_open_group();
    changing.next.n_servers = 3;
    changing.next_servers[2].names = UPSTREAM_NAME_ONE;
    changing.next_servers[2].n_addresses = 0;
    changing_prepare();
    ck_assert_int_eq(changing_give_places("c", "7"), 0);
    ck_assert_ptr_null(upstream_change_line(changing.change, "d"));
    upstream_change_commit(changing.change);
    ck_assert_uint_eq(changing_load(changing_server_at(2)), 0);
    changing.next_servers[2].address_text = "elsewhere";
    changing_change_all();
    ck_assert_uint_eq(changing_load(changing_server_at(2)), ENDPOINT_ABSENT);
}

TEST(change, answers_are_held_while_a_change_is_prepared)
{
    struct server_line *line;
    struct membership_place place = {.list = &changing.addresses[SERVERS], .n = 1, .weight = 1};

    changing.servers[1].names = UPSTREAM_NAME_EACH;
    changing_open_group();
    line = server_line_hold(membership_find_line(changing_members(), "b"));
    changing.next_servers[1].weight = 2;
    changing_prepare();
    ck_assert_int_eq(update("b", "1"), -EBUSY);
    ck_assert_int_eq(upstream_change_prepare(&changing.change, changing.upstream, &changing.next),
                     -EBUSY);
    upstream_change_commit(changing.change);
    ck_assert_int_eq(membership_update(changing_members(), line, &place, 1, NULL), -ESTALE);
    ck_assert_int_eq(update("b", "1"), 1);
    server_line_release(line);
}
