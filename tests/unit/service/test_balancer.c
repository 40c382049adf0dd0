/* service/balancer: nginx's smooth order, exact shares, and the walk after a failure. */
#include <errno.h>
#include <pthread.h>

#include "base/must.h"
#include "service/balancer.h"
#include "support/suite.h"

static struct balancer b;
static struct balancer_walk walk;

static void init(const unsigned *weights, const bool *backup, unsigned n)
{
    ck_assert_int_eq(balancer_init(&b, weights, backup, n), 0);
}

static void expect_picks(const char *letters)
{
    for (; *letters; letters++)
        ck_assert_int_eq('a' + (int)balancer_first(&b, &walk), *letters);
}

/* The servers after the first one of ${walk}, as letters, until there is none. */
static void expect_walk(const char *letters)
{
    unsigned next;

    for (; *letters; letters++) {
        ck_assert_int_eq(balancer_next(&b, &walk, &next), 0);
        ck_assert_int_eq('a' + (int)next, *letters);
    }
    ck_assert_int_eq(balancer_next(&b, &walk, &next), -ENOENT);
    ck_assert_int_eq(balancer_next(&b, &walk, &next), -ENOENT);
}

static const bool no_backup[8];

START_TEST(equal_servers_take_turns)
{
    init((unsigned[]){1, 1, 1}, no_backup, 3);
    expect_picks("abcabcabc");
    balancer_close(&b);
}
END_TEST

START_TEST(a_weight_of_two_is_spread_and_not_in_a_row)
{
    init((unsigned[]){2, 1}, no_backup, 2);
    expect_picks("abaaba");
    balancer_close(&b);
}
END_TEST

START_TEST(the_order_of_five_one_one_is_nginxs)
{
    init((unsigned[]){5, 1, 1}, no_backup, 3);
    expect_picks("aabacaaaabacaa");
    balancer_close(&b);
}
END_TEST

START_TEST(weights_with_a_common_divisor_have_a_short_cycle)
{
    init((unsigned[]){200, 100}, no_backup, 2);
    ck_assert_uint_eq(b.cycle_len, 3);
    expect_picks("abaaba");
    balancer_close(&b);
}
END_TEST

START_TEST(over_a_cycle_each_server_gets_exactly_its_weight)
{
    static const unsigned weights[] = {256, 3, 97, 1};
    unsigned picked[4] = {0};

    init(weights, no_backup, 4);
    for (unsigned i = 0; i < 3 * (256 + 3 + 97 + 1); i++)
        picked[balancer_first(&b, &walk)]++;
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(picked[i], 3 * weights[i]);
    balancer_close(&b);
}
END_TEST

START_TEST(one_server_is_the_only_choice_and_has_no_next)
{
    init((unsigned[]){7}, no_backup, 1);
    expect_picks("aaa");
    expect_walk("");
    balancer_close(&b);
}
END_TEST

START_TEST(after_a_failure_the_others_follow_in_order_and_each_once)
{
    init((unsigned[]){1, 1, 1}, no_backup, 3);
    expect_picks("a");
    expect_walk("bc");
    expect_picks("b");
    expect_walk("ca");
    expect_picks("c");
    expect_walk("ab");
    balancer_close(&b);
}
END_TEST

START_TEST(backups_are_never_first_and_always_last)
{
    init((unsigned[]){1, 9, 1, 1}, (bool[]){false, true, false, true}, 4);
    expect_picks("acacac");
    expect_walk("abd");
    expect_picks("a");
    expect_walk("cbd");
    balancer_close(&b);
}
END_TEST

START_TEST(when_all_are_backups_none_is)
{
    init((unsigned[]){2, 1}, (bool[]){true, true}, 2);
    expect_picks("aba");
    expect_walk("b");
    balancer_close(&b);
}
END_TEST

START_TEST(what_cannot_be_balanced_is_refused)
{
    ck_assert_int_eq(balancer_init(&b, NULL, NULL, 0), -EINVAL);
    ck_assert_int_eq(balancer_init(&b, (unsigned[]){0}, no_backup, 1), -EINVAL);
    ck_assert_int_eq(balancer_init(&b, (unsigned[]){1, 257}, no_backup, 2), -EINVAL);
    ck_assert_int_eq(balancer_init(&b, (unsigned[]){1}, no_backup, 65536), -EINVAL);
}
END_TEST

#define SESSIONS_EACH 30000

static void *pick_many(void *arg)
{
    unsigned *picked = arg;
    struct balancer_walk own;

    for (int i = 0; i < SESSIONS_EACH; i++)
        picked[balancer_first(&b, &own)]++;
    return NULL;
}

START_TEST(many_threads_together_keep_the_shares_exact)
{
    unsigned picked[4][2] = {{0}};
    pthread_t threads[4];

    init((unsigned[]){2, 1}, no_backup, 2);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, pick_many, picked[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < 4; i++) {
        picked[0][0] += picked[i][0];
        picked[0][1] += picked[i][1];
    }
    ck_assert_uint_eq(picked[0][0], 4 * SESSIONS_EACH / 3 * 2);
    ck_assert_uint_eq(picked[0][1], 4 * SESSIONS_EACH / 3);
    balancer_close(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("service/balancer");
    TCase *tc = suite_group(suite, "balancer");

    tcase_add_test(tc, equal_servers_take_turns);
    tcase_add_test(tc, a_weight_of_two_is_spread_and_not_in_a_row);
    tcase_add_test(tc, the_order_of_five_one_one_is_nginxs);
    tcase_add_test(tc, weights_with_a_common_divisor_have_a_short_cycle);
    tcase_add_test(tc, over_a_cycle_each_server_gets_exactly_its_weight);
    tcase_add_test(tc, one_server_is_the_only_choice_and_has_no_next);
    tcase_add_test(tc, after_a_failure_the_others_follow_in_order_and_each_once);
    tcase_add_test(tc, backups_are_never_first_and_always_last);
    tcase_add_test(tc, when_all_are_backups_none_is);
    tcase_add_test(tc, what_cannot_be_balanced_is_refused);
    tcase_add_test(tc, many_threads_together_keep_the_shares_exact);
    return suite_run(suite);
}
