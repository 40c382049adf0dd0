/* spare/spare: when a server has no spares, and when those that it has are replaced. */
#include <stdatomic.h>
#include <unistd.h>

#include "spare/spare_internal.h"
#include "support/kept.h"
#include "support/log_lines.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

/* ---- when none are kept ---- */

GROUP(when_none_are_kept, kept_setup, kept_teardown);

TEST_EACH(when_none_are_kept, server_that_is_down_ejected_or_absent_has_no_spares_until_it_is_fit,
          3)
{
    static const enum endpoint_flag marks[] = {ENDPOINT_DOWN, ENDPOINT_EJECTED, ENDPOINT_ABSENT};

    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    (void)endpoint_set_flag(&kept.server->endpoint, marks[_i]);
    for (unsigned i = 0; i < KEEP; i++)
        sockets_hear_end(kept.accepted[i]);
    UNTIL(kept_idle() == 0);
    ck_assert_int_eq(kept_take(), -1);
    ck_assert_uint_eq(kept_counted(SPARE_DROPPED), KEEP);
    UNTIL(ref_count(&kept.server->references) == (marks[_i] == ENDPOINT_ABSENT ? 1 : 2));
    kept_close_accepted();
    (void)endpoint_clear_flag(&kept.server->endpoint, marks[_i]);
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == 2 * KEEP);
}

/* 0: by its weight; 1: by its level, as a host of a service that becomes a backup. */
TEST_EACH(when_none_are_kept, server_that_is_a_backup_or_of_weight_0_has_no_spares, 2)
{
    kept_open_pool();
    for (int round = 0; round < 2; round++) {
        UNTIL(kept_idle() == KEEP);
        if (_i == 0)
            atomic_store(&kept.server->endpoint.weight, 0);
        else
            atomic_store(&kept.server->endpoint.level, 1);
        spare_pool_refresh(kept.pool);
        UNTIL(kept_idle() == 0);
        ck_assert_int_eq(kept_take(), -1);
        atomic_store(&kept.server->endpoint.weight, 1);
        atomic_store(&kept.server->endpoint.level, 0);
        spare_pool_refresh(kept.pool);
    }
    UNTIL(kept_idle() == KEEP);
}

TEST(when_none_are_kept, backup_has_spares_when_the_others_have_weight_0)
{
    struct upstream_server_conf confs[2] = {kept.server_conf, kept.server_conf};

    confs[0].weight = 0;
    confs[1].id = "b";
    confs[1].backup = true;
    kept.conf.servers = confs;
    kept.conf.n_servers = 2;
    kept_open_pool();
    ck_assert_ptr_nonnull(membership_now(&kept.upstream->membership)->servers[1]->spare);
}

TEST(when_none_are_kept, server_with_a_new_address_has_its_spares_opened_there)
{
    struct address elsewhere;
    int other = sockets_listen(&elsewhere, 64);

    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    ck_assert_int_eq(endpoint_set_addresses(&kept.server->endpoint, NULL, &elsewhere, 1), 1);
    for (unsigned i = 0; i < KEEP; i++)
        sockets_hear_end(kept.accepted[i]);
    for (unsigned i = 0; i < KEEP; i++)
        kept.accepted[kept.n_accepted++] = sockets_accept(other);
    UNTIL(kept_counted(SPARE_OPENED) == 2 * KEEP);
    close(other);
}

TEST(when_none_are_kept, server_that_sends_first_gets_no_more_spares)
{
    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    sockets_say(kept.accepted[0], "220 hello");
    UNTIL(kept_idle() == 0);
    EXPECT_LOG_LINES("speaks before its client does", 1);
    ck_assert_int_eq(kept_take(), -1);
    PAUSE_MS(50);
    ck_assert_uint_eq(kept_counted(SPARE_OPENED), KEEP);
}

TEST(when_none_are_kept, bytes_before_a_close_do_not_count_as_sending_first)
{
    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    sockets_say(kept.accepted[KEEP - 1], "408");
    PAUSE_MS(20);
    close(kept.accepted[--kept.n_accepted]);
    UNTIL(kept_counted(SPARE_CLOSED) == 1);
    kept_accept_some(1);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP + 1);
    ck_assert_uint_eq(log_lines_with("speaks before its client does"), 0);
}

TEST(when_none_are_kept, connection_above_its_maximum_age_is_replaced)
{
    int64_t began_at_ns = clock_now_ns();

    kept.conf.spare.max_age_ns = 200 * NS_PER_MS;
    kept.conf.spare.keep = MANY;
    kept_open_pool();
    kept_accept_some(MANY);
    UNTIL(kept_counted(SPARE_EXPIRED) >= 1);
    ck_assert_int_ge(since_ms(began_at_ns), 150);
    kept_accept_some(1);
    UNTIL(kept_counted(SPARE_OPENED) > MANY);
}
