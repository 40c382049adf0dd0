/*
 * spare/spare: connections that are open before anybody needs them: how many, to whom, and when
 * not.
 */
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/descriptor_budget.h"
#include "spare/spare_internal.h"
#include "support/kept.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(what_a_loop_gives, kept_setup, kept_teardown);

TEST(what_a_loop_gives, pool_keeps_the_configured_number_and_lends_a_descriptor_for_each)
{
    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    ck_assert_uint_eq(kept_idle(), KEEP);
    ck_assert_uint_eq(atomic_load(&kept.descriptors.used), KEEP);
    ck_assert_uint_eq(atomic_load(&kept.descriptors.lent), KEEP);
    ck_assert_uint_eq(ref_count(&kept.server->references), 2);
}

TEST(what_a_loop_gives, taken_connection_belongs_to_the_caller_and_is_replaced)
{
    int fd;

    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    fd = kept_take();
    ck_assert_int_ge(fd, 0);
    kept_accept_some(1);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP + 1);
    ck_assert_uint_eq(kept_counted(SPARE_USED), 1);
    ck_assert_uint_eq(kept_idle(), KEEP);
    ck_assert_uint_eq(atomic_load(&kept.descriptors.lent), KEEP);
    ck_assert_int_eq(send(fd, "x", 1, MSG_NOSIGNAL), 1);
    close(fd);
}

TEST(what_a_loop_gives, connection_closed_by_the_server_is_never_handed_out)
{
    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    kept_close_accepted();
    while (kept_counted(SPARE_CLOSED) < KEEP) {
        char byte;
        int fd = kept_take();

        if (fd < 0)
            continue;
        ck_assert_int_lt(recv(fd, &byte, 1, MSG_DONTWAIT), 0); /* a new one by then */
        close(fd);
    }
    ck_assert_uint_ge(kept_counted(SPARE_CLOSED) + kept_counted(SPARE_USED), KEEP);
    close(kept.listening);
    kept.listening = -1; /* with all that nobody accepted */
}

TEST(what_a_loop_gives, session_that_finds_no_spare_is_counted)
{
    close(kept.listening);
    kept.listening = sockets_bound(&kept.address); /* it refuses */
    kept_open_pool();
    UNTIL(kept_counted(SPARE_FAILED) > 0);
    ck_assert_int_eq(kept_take(), -1);
    ck_assert_uint_eq(kept_counted(SPARE_MISSED), 1);
    EXPECT_LOG_LINES("cannot open a spare connection", 1);
}

TEST(what_a_loop_gives, refusing_server_is_retried_at_growing_intervals)
{
    close(kept.listening);
    kept.listening = sockets_bound(&kept.address);
    kept_open_pool();
    UNTIL(kept_counted(SPARE_FAILED) > 0);
    PAUSE_MS(600);
    /* At once and after about 0.1, 0.2 and 0.4 s, all that are missing each time. */
    ck_assert_uint_le(kept_counted(SPARE_FAILED), 5 * KEEP);
    EXPECT_LOG_LINES("cannot open a spare connection", 1);
    ck_assert_int_eq(listen(kept.listening, 64), 0);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    UNTIL(log_lines_with("can be opened again") == 1);
}

static void do_note_pause(void *arg)
{
    struct spare_list *part = spare_part(spare_of(kept.server), 0);

    *(int64_t *)arg = part->pause_ns;
    ck_assert(part->pause_ns == 0 || part->not_before_ns >= part->paused_until_ns);
}

static int64_t pause_ns(void)
{
    int64_t ns;

    loop_runner_call(kept.loop, do_note_pause, &ns);
    return ns;
}

TEST(what_a_loop_gives, server_that_closes_spares_soon_is_retried_at_growing_intervals)
{
    unsigned rounds = 0;

    kept_open_pool();
    ck_assert_int_eq(pause_ns(), 0);
    while (pause_ns() < 400 * NS_PER_MS) { /* after 3, unless the machine is slow */
        ck_assert_uint_lt(rounds++, 10);
        kept_accept_some(KEEP);
        kept_close_accepted();
        UNTIL(kept_counted(SPARE_CLOSED) == rounds * KEEP);
    }
}

static void do_look_at_delay(void *arg)
{
    *(int64_t *)arg = spare_part(spare_of(kept.server), 0)->not_before_ns;
}

TEST(what_a_loop_gives, spares_closed_together_are_replaced_together)
{
    int64_t closed_at_ns, not_before_ns;

    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    PAUSE_MS(1100); /* else they count as rejected */
    closed_at_ns = clock_now_ns();
    sockets_end(kept.accepted[0]);
    UNTIL(kept_counted(SPARE_CLOSED) == 1);
    loop_runner_call(kept.loop, do_look_at_delay, &not_before_ns);
    ck_assert(not_before_ns >= closed_at_ns + 100 * NS_PER_MS);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP + 1);
}

TEST(what_a_loop_gives, without_a_pool_or_configured_spares_none_are_opened)
{
    struct take t;

    kept.conf.spare.keep = 0;
    kept_open_pool();
    ck_assert_ptr_null(kept.server->spare);
    loop_runner_call(kept.loop, kept_do_take, &t);
    ck_assert_int_eq(t.fd, -1);
    ck_assert_uint_eq(ref_count(&kept.server->references), 1);
}

/* ---- what others need ---- */

GROUP(what_others_need, kept_setup, kept_teardown);

TEST(what_others_need, spares_are_closed_for_lack_of_descriptors_and_opened_again_later)
{
    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    descriptor_budget_count(&kept.descriptors, 985);
    ck_assert(descriptor_budget_wanted_back(&kept.descriptors) ==
              !descriptor_budget_left(&kept.descriptors, 10));
    descriptor_budget_count(&kept.descriptors, 5);
    ck_assert(descriptor_budget_wanted_back(&kept.descriptors));
    spare_pool_refresh(kept.pool);
    UNTIL(kept_idle() == 0);
    ck_assert(!descriptor_budget_wanted_back(
        &kept.descriptors)); /* there is nothing to be had any more */
    ck_assert_uint_eq(kept_counted(SPARE_DROPPED), KEEP);
    ck_assert(!descriptor_budget_lend(&kept.descriptors, 1));
    descriptor_budget_release(&kept.descriptors, 990);
    UNTIL(kept_counted(SPARE_OPENED) == 2 * KEEP); /* it looks once a second */
}

TEST(what_others_need, spares_are_closed_when_sessions_need_max_connections)
{
    kept.server_conf.max_connections = KEEP + 1;
    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    for (unsigned i = 0; i < KEEP + 1; i++)
        ck_assert_int_eq(endpoint_enter(&kept.server->endpoint), 0);
    spare_pool_refresh(kept.pool);
    UNTIL(kept_idle() == 0);
    for (unsigned i = 0; i < KEEP + 1; i++)
        endpoint_leave(&kept.server->endpoint);
    UNTIL(kept_counted(SPARE_OPENED) == 2 * KEEP);
}

TEST(what_others_need, stopped_pool_hands_out_none_and_opens_none)
{
    kept_open_pool();
    kept_accept_some(KEEP);
    UNTIL(kept_counted(SPARE_OPENED) == KEEP);
    loop_runner_call(kept.loop, kept_do_stop, NULL);
    UNTIL(kept_idle() == 0);
    spare_pool_refresh(kept.pool);
    ck_assert_int_eq(kept_take(), -1);
    ck_assert_uint_eq(kept_counted(SPARE_OPENED), KEEP);
    ck_assert_uint_eq(kept_counted(SPARE_MISSED), 0);
}
