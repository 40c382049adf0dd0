/* service/upstream: the group as configured, and where its servers are. */
#include <pthread.h>

#include "service/upstream.h"
#include "support/sockets.h"
#include "support/suite.h"

START_TEST(a_group_has_its_servers_in_the_order_of_the_configuration)
{
    struct upstream_server_conf servers[] = {{.id = "a", .weight = 1},
                                             {.id = "b", .weight = 2},
                                             {.id = "c", .weight = 1, .backup = true}};
    struct upstream_conf conf = {.name = "back", .servers = servers, .n_servers = 3};
    struct balancer_walk walk;
    struct upstream *up;
    unsigned next;

    ck_assert_int_eq(upstream_create(&up, &conf), 0);
    ck_assert_ptr_eq(up->conf, &conf);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(up->servers[i].conf, &servers[i]);
    ck_assert_uint_eq(balancer_first(&up->balancer, &walk), 1); /* the heavier one */
    ck_assert_uint_eq(balancer_first(&up->balancer, &walk), 0);
    ck_assert_int_eq(balancer_next(&up->balancer, &walk, &next), 0);
    ck_assert_uint_eq(next, 1);
    ck_assert_int_eq(balancer_next(&up->balancer, &walk, &next), 0);
    ck_assert_uint_eq(next, 2); /* the backup last */
    upstream_destroy(up);
}
END_TEST

/* ---- addresses ---- */

static struct address literal[2];
static struct upstream_server_conf one_conf;
static struct upstream_conf conf = {.name = "back", .servers = &one_conf, .n_servers = 1};
static struct upstream *upstream;
static struct upstream_server *server;

/* A group of one server with the first ${n} addresses of `literal`. */
static void open_one(unsigned n)
{
    sockets_loopback(&literal[0], 7);
    sockets_loopback(&literal[1], 8);
    one_conf = (struct upstream_server_conf){
        .id = "a", .address_text = "there", .addresses = literal, .n_addresses = n, .weight = 1};
    ck_assert_int_eq(upstream_create(&upstream, &conf), 0);
    server = &upstream->servers[0];
}

static unsigned port_at(const struct upstream_addresses *at, unsigned i)
{
    return ntohs(at->list[i].u.in.sin_port);
}

START_TEST(what_was_configured_is_known_from_the_beginning)
{
    open_one(2);
    ck_assert_uint_eq(upstream_addresses(server)->n, 2);
    ck_assert_uint_eq(port_at(upstream_addresses(server), 0), 7);
    ck_assert_uint_eq(port_at(upstream_addresses(server), 1), 8);
    upstream_destroy(upstream);
}
END_TEST

START_TEST(a_name_is_known_when_its_addresses_are_set)
{
    open_one(0);
    ck_assert_ptr_null(upstream_addresses(server));
    ck_assert_int_eq(upstream_set_addresses(server, literal, 2), 0);
    ck_assert_uint_eq(upstream_addresses(server)->n, 2);
    ck_assert_uint_eq(port_at(upstream_addresses(server), 1), 8);
    upstream_destroy(upstream);
}
END_TEST

START_TEST(another_answer_takes_the_place_and_the_old_one_can_still_be_used)
{
    const struct upstream_addresses *old;

    open_one(1);
    old = upstream_addresses(server);
    ck_assert_int_eq(upstream_set_addresses(server, &literal[1], 1), 0);
    ck_assert_uint_eq(port_at(upstream_addresses(server), 0), 8);
    ck_assert_uint_eq(port_at(old, 0), 7);
    upstream_destroy(upstream);
}
END_TEST

START_TEST(the_same_answer_in_another_order_changes_nothing)
{
    struct address turned[2];
    const struct upstream_addresses *old;

    open_one(2);
    old = upstream_addresses(server);
    turned[0] = literal[1];
    turned[1] = literal[0];
    ck_assert_int_eq(upstream_set_addresses(server, turned, 2), 0);
    ck_assert_ptr_eq(upstream_addresses(server), old);
    ck_assert_int_eq(upstream_set_addresses(server, turned, 1), 0);
    ck_assert_ptr_ne(upstream_addresses(server), old);
    upstream_destroy(upstream);
}
END_TEST

#define CHANGES 2000

static atomic_bool changes_over;

/* A set is from one answer: `n` addresses, each with the port 100 times ${n}, and one more from place to place. */
static void *read_addresses(void *arg)
{
    while (!atomic_load(&changes_over)) {
        const struct upstream_addresses *at = upstream_addresses(server);

        for (unsigned i = 0; at && i < at->n; i++)
            ck_assert_uint_eq(port_at(at, i), 100 * at->n + i);
    }
    return arg;
}

START_TEST(readers_never_see_half_an_answer)
{
    pthread_t readers[2];
    struct address list[8];

    open_one(0);
    for (int i = 0; i < 2; i++)
        pthread_create(&readers[i], NULL, read_addresses, NULL);
    for (unsigned change = 0; change < CHANGES; change++) {
        unsigned n = 1 + change % 8;

        for (unsigned i = 0; i < n; i++)
            sockets_loopback(&list[i], 100 * n + i);
        ck_assert_int_eq(upstream_set_addresses(server, list, n), 0);
    }
    atomic_store(&changes_over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    upstream_destroy(upstream);
}
END_TEST

START_TEST(destroying_none_is_allowed)
{
    upstream_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("service/upstream");
    TCase *tc = suite_group(suite, "upstream");

    tcase_add_test(tc, a_group_has_its_servers_in_the_order_of_the_configuration);
    tcase_add_test(tc, what_was_configured_is_known_from_the_beginning);
    tcase_add_test(tc, a_name_is_known_when_its_addresses_are_set);
    tcase_add_test(tc, another_answer_takes_the_place_and_the_old_one_can_still_be_used);
    tcase_add_test(tc, the_same_answer_in_another_order_changes_nothing);
    tcase_add_test(tc, readers_never_see_half_an_answer);
    tcase_add_test(tc, destroying_none_is_allowed);
    return suite_run(suite);
}
