/*
 * upstream/spare: connections that are open before anybody needs them: how many, to whom, and when
 * not.
 */
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/descriptor_budget.h"
#include "net/netloop.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/spare_internal.h"

#define KEEP  3
#define MANY  16         /* enough for one to draw nearly all of the jitter */
#define PLACE (MANY + 1) /* space for those that a test has accepted */

/* With UNTIL_LIMIT_NS, what a test waits for could be the age limit, which is a quarter shorter. */
#define NEVER_TOO_OLD_NS (100 * UNTIL_LIMIT_NS)

static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf conf;
static struct upstream *upstream;
static struct upstream_server *server;
static struct loop *loop;
static struct netloop *net;
static struct descriptor_budget descriptors;
static struct spare_pools *pools;
static struct spare_pool *pool;
static int listening, accepted[PLACE];
static unsigned n_accepted, before;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    before = process_descriptors();
    listening = sockets_listen(&address, 64);
    server_conf.max_connections = 0;
    server_conf.backup = false;
    conf = (struct upstream_conf){.name = "back",
                                  .servers = &server_conf,
                                  .n_servers = 1,
                                  .connect_timeout_ns = 5 * NS_PER_S,
                                  .spare = {.keep = KEEP, .max_age_ns = NEVER_TOO_OLD_NS}};
    descriptors = (struct descriptor_budget){.max = 1000, .reserve = 10};
    n_accepted = 0;
}

static void open_pool(void)
{
    struct spare_pools_change *change;

    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    server = membership_now(&upstream->membership)->servers[0];
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    net->descriptors = &descriptors;
    ck_assert_int_eq(spare_pools_create(&pools, NULL), 0);
    ck_assert_int_eq(spare_pools_add(pools, net, 0, &pool), 0);
    ck_assert_int_eq(spare_pools_prepare(pools, &upstream, 1, &change), 0);
    spare_pools_commit(change);
    spare_pools_refresh(pools);
}

static void do_stop(void *arg)
{
    (void)arg;
    spare_pool_stop(pool);
}

static void teardown(void)
{
    loop_runner_call(loop, do_stop, NULL);
    loop_runner_stop(loop);
    ck_assert_uint_eq(ref_count(&server->references), 1);
    ck_assert_uint_eq(atomic_load(&descriptors.used) + atomic_load(&descriptors.lent), 0);
    spare_pools_destroy(pools);
    netloop_destroy(net);
    loop_destroy(loop);
    upstream_destroy(upstream);
    while (n_accepted > 0)
        close(accepted[--n_accepted]);
    if (listening >= 0)
        close(listening);
    ck_assert_uint_eq(process_descriptors(), before);
}

static uint64_t counted(enum spare_count what)
{
    return atomic_load(&server->spare->counts.of[what]);
}

static unsigned idle(void)
{
    return spare_now(server->spare);
}

static void accept_some(unsigned n)
{
    while (n-- > 0)
        accepted[n_accepted++] = sockets_accept(listening);
}

static void close_accepted(void)
{
    while (n_accepted > 0)
        close(accepted[--n_accepted]);
}

/* ---- what a loop gives ---- */

struct take {
    int fd;
    struct address address;
};

static void do_take(void *arg)
{
    struct take *t = arg;
    struct spare_taken taken;

    t->fd = -1;
    if (!spare_take(pool, server, &taken))
        return;
    t->fd = taken.fd;
    t->address = taken.addresses->list[taken.which];
    endpoint_release_addresses(taken.addresses);
}

static int take(void)
{
    struct take t;

    loop_runner_call(loop, do_take, &t);
    if (t.fd >= 0)
        ck_assert(address_equal(&t.address, &address));
    return t.fd;
}

GROUP(what_a_loop_gives, setup, teardown);

TEST(what_a_loop_gives, pool_keeps_the_configured_number_and_lends_a_descriptor_for_each)
{
    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    ck_assert_uint_eq(idle(), KEEP);
    ck_assert_uint_eq(atomic_load(&descriptors.used), KEEP);
    ck_assert_uint_eq(atomic_load(&descriptors.lent), KEEP);
    ck_assert_uint_eq(ref_count(&server->references), 2);
}

TEST(what_a_loop_gives, taken_connection_belongs_to_the_caller_and_is_replaced)
{
    int fd;

    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    fd = take();
    ck_assert_int_ge(fd, 0);
    accept_some(1);
    UNTIL(counted(SPARE_OPENED) == KEEP + 1);
    ck_assert_uint_eq(counted(SPARE_USED), 1);
    ck_assert_uint_eq(idle(), KEEP);
    ck_assert_uint_eq(atomic_load(&descriptors.lent), KEEP);
    ck_assert_int_eq(send(fd, "x", 1, MSG_NOSIGNAL), 1);
    close(fd);
}

TEST(what_a_loop_gives, connection_closed_by_the_server_is_never_handed_out)
{
    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    close_accepted();
    while (counted(SPARE_CLOSED) < KEEP) {
        char byte;
        int fd = take();

        if (fd < 0)
            continue;
        ck_assert_int_lt(recv(fd, &byte, 1, MSG_DONTWAIT), 0); /* a new one by then */
        close(fd);
    }
    ck_assert_uint_ge(counted(SPARE_CLOSED) + counted(SPARE_USED), KEEP);
    close(listening);
    listening = -1; /* with all that nobody accepted */
}

TEST(what_a_loop_gives, session_that_finds_no_spare_is_counted)
{
    close(listening);
    listening = sockets_bound(&address); /* it refuses */
    open_pool();
    UNTIL(counted(SPARE_FAILED) > 0);
    ck_assert_int_eq(take(), -1);
    ck_assert_uint_eq(counted(SPARE_MISSED), 1);
    EXPECT_LOG_LINES("cannot open a spare connection", 1);
}

TEST(what_a_loop_gives, refusing_server_is_retried_at_growing_intervals)
{
    close(listening);
    listening = sockets_bound(&address);
    open_pool();
    UNTIL(counted(SPARE_FAILED) > 0);
    PAUSE_MS(600);
    /* At once and after about 0.1, 0.2 and 0.4 s, all that are missing each time. */
    ck_assert_uint_le(counted(SPARE_FAILED), 5 * KEEP);
    EXPECT_LOG_LINES("cannot open a spare connection", 1);
    ck_assert_int_eq(listen(listening, 64), 0);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    UNTIL(log_lines_with("can be opened again") == 1);
}

static void do_note_pause(void *arg)
{
    struct spare_list *part = spare_part(server->spare, 0);

    *(int64_t *)arg = part->pause_ns;
    ck_assert(part->pause_ns == 0 || part->not_before_ns >= part->paused_until_ns);
}

static int64_t pause_ns(void)
{
    int64_t ns;

    loop_runner_call(loop, do_note_pause, &ns);
    return ns;
}

TEST(what_a_loop_gives, server_that_closes_spares_soon_is_retried_at_growing_intervals)
{
    unsigned rounds = 0;

    open_pool();
    ck_assert_int_eq(pause_ns(), 0);
    while (pause_ns() < 400 * NS_PER_MS) { /* after 3, unless the machine is slow */
        ck_assert_uint_lt(rounds++, 10);
        accept_some(KEEP);
        close_accepted();
        UNTIL(counted(SPARE_CLOSED) == rounds * KEEP);
    }
}

static void do_look_at_delay(void *arg)
{
    *(int64_t *)arg = spare_part(server->spare, 0)->not_before_ns;
}

TEST(what_a_loop_gives, spares_closed_together_are_replaced_together)
{
    int64_t closed_at_ns, not_before_ns;

    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    PAUSE_MS(1100); /* else they count as rejected */
    closed_at_ns = clock_now_ns();
    sockets_end(accepted[0]);
    UNTIL(counted(SPARE_CLOSED) == 1);
    loop_runner_call(loop, do_look_at_delay, &not_before_ns);
    ck_assert(not_before_ns >= closed_at_ns + 100 * NS_PER_MS);
    UNTIL(counted(SPARE_OPENED) == KEEP + 1);
}

TEST(what_a_loop_gives, without_a_pool_or_configured_spares_none_are_opened)
{
    struct take t;

    conf.spare.keep = 0;
    open_pool();
    ck_assert_ptr_null(server->spare);
    loop_runner_call(loop, do_take, &t);
    ck_assert_int_eq(t.fd, -1);
    ck_assert_uint_eq(ref_count(&server->references), 1);
}

/* ---- when none are kept ---- */

GROUP(when_none_are_kept, setup, teardown);

TEST_EACH(when_none_are_kept, server_that_is_down_ejected_or_absent_has_no_spares_until_it_is_fit,
          3)
{
    static const enum endpoint_flag marks[] = {ENDPOINT_DOWN, ENDPOINT_EJECTED, ENDPOINT_ABSENT};

    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    (void)endpoint_set_flag(&server->endpoint, marks[_i]);
    for (unsigned i = 0; i < KEEP; i++)
        sockets_hear_end(accepted[i]);
    UNTIL(idle() == 0);
    ck_assert_int_eq(take(), -1);
    ck_assert_uint_eq(counted(SPARE_DROPPED), KEEP);
    UNTIL(ref_count(&server->references) == (marks[_i] == ENDPOINT_ABSENT ? 1 : 2));
    close_accepted();
    (void)endpoint_clear_flag(&server->endpoint, marks[_i]);
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == 2 * KEEP);
}

/* 0: by its weight; 1: by its level, as a host of a service that becomes a backup. */
TEST_EACH(when_none_are_kept, server_that_is_a_backup_or_of_weight_0_has_no_spares, 2)
{
    open_pool();
    for (int round = 0; round < 2; round++) {
        UNTIL(idle() == KEEP);
        if (_i == 0)
            atomic_store(&server->endpoint.weight, 0);
        else
            atomic_store(&server->endpoint.level, 1);
        spare_pool_refresh(pool);
        UNTIL(idle() == 0);
        ck_assert_int_eq(take(), -1);
        atomic_store(&server->endpoint.weight, 1);
        atomic_store(&server->endpoint.level, 0);
        spare_pool_refresh(pool);
    }
    UNTIL(idle() == KEEP);
}

TEST(when_none_are_kept, backup_has_spares_when_the_others_have_weight_0)
{
    struct upstream_server_conf confs[2] = {server_conf, server_conf};

    confs[0].weight = 0;
    confs[1].id = "b";
    confs[1].backup = true;
    conf.servers = confs;
    conf.n_servers = 2;
    open_pool();
    ck_assert_ptr_nonnull(membership_now(&upstream->membership)->servers[1]->spare);
}

TEST(when_none_are_kept, server_with_a_new_address_has_its_spares_opened_there)
{
    struct address elsewhere;
    int other = sockets_listen(&elsewhere, 64);

    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    ck_assert_int_eq(endpoint_set_addresses(&server->endpoint, NULL, &elsewhere, 1), 1);
    for (unsigned i = 0; i < KEEP; i++)
        sockets_hear_end(accepted[i]);
    for (unsigned i = 0; i < KEEP; i++)
        accepted[n_accepted++] = sockets_accept(other);
    UNTIL(counted(SPARE_OPENED) == 2 * KEEP);
    close(other);
}

TEST(when_none_are_kept, server_that_sends_first_gets_no_more_spares)
{
    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    sockets_say(accepted[0], "220 hello");
    UNTIL(idle() == 0);
    EXPECT_LOG_LINES("speaks before its client does", 1);
    ck_assert_int_eq(take(), -1);
    PAUSE_MS(50);
    ck_assert_uint_eq(counted(SPARE_OPENED), KEEP);
}

TEST(when_none_are_kept, bytes_before_a_close_do_not_count_as_sending_first)
{
    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    sockets_say(accepted[KEEP - 1], "408");
    PAUSE_MS(20);
    close(accepted[--n_accepted]);
    UNTIL(counted(SPARE_CLOSED) == 1);
    accept_some(1);
    UNTIL(counted(SPARE_OPENED) == KEEP + 1);
    ck_assert_uint_eq(log_lines_with("speaks before its client does"), 0);
}

TEST(when_none_are_kept, connection_above_its_maximum_age_is_replaced)
{
    int64_t began_at_ns = clock_now_ns();

    conf.spare.max_age_ns = 200 * NS_PER_MS;
    conf.spare.keep = MANY;
    open_pool();
    accept_some(MANY);
    UNTIL(counted(SPARE_EXPIRED) >= 1);
    ck_assert_int_ge(since_ms(began_at_ns), 150);
    accept_some(1);
    UNTIL(counted(SPARE_OPENED) > MANY);
}

/* ---- what others need ---- */

GROUP(what_others_need, setup, teardown);

TEST(what_others_need, spares_are_closed_for_lack_of_descriptors_and_opened_again_later)
{
    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    descriptor_budget_count(&descriptors, 985);
    ck_assert(descriptor_budget_wanted_back(&descriptors) ==
              !descriptor_budget_left(&descriptors, 10));
    descriptor_budget_count(&descriptors, 5);
    ck_assert(descriptor_budget_wanted_back(&descriptors));
    spare_pool_refresh(pool);
    UNTIL(idle() == 0);
    ck_assert(
        !descriptor_budget_wanted_back(&descriptors)); /* there is nothing to be had any more */
    ck_assert_uint_eq(counted(SPARE_DROPPED), KEEP);
    ck_assert(!descriptor_budget_lend(&descriptors, 1));
    descriptor_budget_release(&descriptors, 990);
    UNTIL(counted(SPARE_OPENED) == 2 * KEEP); /* it looks once a second */
}

TEST(what_others_need, spares_are_closed_when_sessions_need_max_connections)
{
    server_conf.max_connections = KEEP + 1;
    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    for (unsigned i = 0; i < KEEP + 1; i++)
        ck_assert_int_eq(endpoint_enter(&server->endpoint), 0);
    spare_pool_refresh(pool);
    UNTIL(idle() == 0);
    for (unsigned i = 0; i < KEEP + 1; i++)
        endpoint_leave(&server->endpoint);
    UNTIL(counted(SPARE_OPENED) == 2 * KEEP);
}

TEST(what_others_need, stopped_pool_hands_out_none_and_opens_none)
{
    open_pool();
    accept_some(KEEP);
    UNTIL(counted(SPARE_OPENED) == KEEP);
    loop_runner_call(loop, do_stop, NULL);
    UNTIL(idle() == 0);
    spare_pool_refresh(pool);
    ck_assert_int_eq(take(), -1);
    ck_assert_uint_eq(counted(SPARE_OPENED), KEEP);
    ck_assert_uint_eq(counted(SPARE_MISSED), 0);
}
