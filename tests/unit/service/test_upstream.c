/* service/upstream: the group as configured. */
#include "service/upstream.h"
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
    tcase_add_test(tc, destroying_none_is_allowed);
    return suite_run(suite);
}
