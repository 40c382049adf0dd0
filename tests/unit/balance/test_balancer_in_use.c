/*
 * balance/balancer_in_use: with `stays`, endpoints in use stay so until they fail; all threads and
 * all balancers of a group agree on them.
 */
#include <errno.h>
#include <pthread.h>

#include "base/hash.h"
#include "support/endpoints.h"
#include "support/sanitized.h"
#include "support/suite.h"

#define KINDS    BALANCER_KINDS
#define SHARING  BALANCER_FIRST /* kinds that use all endpoints of a level */
#define SESSIONS 40

static struct endpoints es;
static struct balancer *b, *other;

static void teardown(void)
{
    balancer_destroy(b);
    balancer_destroy(other);
    b = other = NULL;
    endpoints_close(&es);
}

/* Two of level 0, and two backups. */
static void open_levels(enum balancer_kind kind)
{
    endpoints_open(&es, 4);
    es.all[2].level = es.all[3].level = BALANCER_LEVELS - 1;
    es.conf.stays = true;
    b = endpoints_balancer(&es, kind);
    balancer_settle(b);
}

static void go_down(unsigned i)
{
    endpoint_set_flag(&es.all[i], ENDPOINT_DOWN);
    balancer_settle(b);
}

static void come_up(unsigned i)
{
    endpoint_clear_flag(&es.all[i], ENDPOINT_DOWN);
    balancer_settle(b);
}

/* Bits of the endpoints that sessions get. */
static unsigned picked_of(struct balancer *from)
{
    unsigned picked = 0;

    for (unsigned i = 0; i < SESSIONS; i++) {
        int at = endpoints_touch(&es, from, hash_mix(i));

        ck_assert_int_ge(at, 0);
        picked |= 1u << at;
    }
    return picked;
}

static unsigned in_use(void)
{
    unsigned used = 0;

    for (unsigned i = 0; i < es.n; i++)
        used |= endpoint_is_in_use(&es.all[i]) ? 1u << i : 0;
    return used;
}

#define ONLY(i)  (1u << (i))
#define FIRSTS   (ONLY(0) | ONLY(1))
#define BACKUPS  (ONLY(2) | ONLY(3))
#define OF(kind) ((kind) == BALANCER_FIRST)

GROUP(stays, NULL, teardown);

TEST_EACH(stays, returned_endpoints_get_nothing_until_those_in_use_have_failed, KINDS)
{
    unsigned firsts = OF(_i) ? ONLY(0) : FIRSTS, backups = OF(_i) ? ONLY(2) : BACKUPS;

    open_levels(_i);
    ck_assert_uint_eq(picked_of(b), firsts);
    go_down(0);
    ck_assert_uint_eq(picked_of(b), ONLY(1));
    go_down(1);
    ck_assert_uint_eq(picked_of(b), backups);
    come_up(0);
    come_up(1);
    ck_assert_uint_eq(picked_of(b), backups);
    ck_assert_uint_eq(in_use(), backups);
    go_down(2);
    ck_assert_uint_eq(picked_of(b), OF(_i) ? ONLY(0) : ONLY(3));
    go_down(3);
    ck_assert_uint_eq(picked_of(b), firsts);
    ck_assert_uint_eq(in_use(), firsts);
}

TEST_EACH(stays, without_it_the_lowest_level_takes_over_at_once, KINDS)
{
    open_levels(_i);
    balancer_destroy(b);
    es.conf.stays = false;
    b = endpoints_balancer(&es, _i);
    balancer_settle(b);
    go_down(0);
    go_down(1);
    ck_assert_uint_eq(in_use(), BACKUPS);
    come_up(1);
    ck_assert_uint_eq(picked_of(b), ONLY(1));
    ck_assert_uint_eq(in_use(), FIRSTS);
    ck_assert_uint_eq(es.group.n_moves, 2);
}

TEST_EACH(stays, of_one_level_all_kinds_but_first_use_what_returns, SHARING)
{
    open_levels(_i);
    (void)picked_of(b);
    go_down(0);
    come_up(0);
    ck_assert_uint_eq(picked_of(b), FIRSTS);
    ck_assert_uint_eq(es.group.n_moves, 0);
}

TEST(stays, first_uses_one_endpoint_and_goes_on_with_it)
{
    open_levels(BALANCER_FIRST);
    (void)picked_of(b);
    go_down(0);
    come_up(0);
    ck_assert_uint_eq(picked_of(b), ONLY(1));
    ck_assert_uint_eq(in_use(), ONLY(1));
    go_down(1);
    ck_assert_uint_eq(picked_of(b), ONLY(0)); /* in the order of the configuration */
    ck_assert_uint_eq(es.group.n_moves, 2);
}

TEST_EACH(stays, a_session_that_fails_at_those_in_use_gets_no_other, KINDS)
{
    struct balancer_pick_state pick;

    open_levels(_i);
    balancer_begin(&pick, 7);
    for (int i = 0; i < (OF(_i) ? 1 : 2); i++)
        ck_assert_uint_ne(ONLY(endpoints_next(&es, b, &pick)) & FIRSTS, 0);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
    endpoint_set_flag(&es.all[2], ENDPOINT_EJECTED);
    ck_assert_int_eq(endpoints_next(&es, b, &pick), -ENOENT);
}

TEST_EACH(stays, full_endpoints_in_use_make_way_only_with_spills, 2 * KINDS)
{
    endpoints_open(&es, 3);
    es.all[1].level = es.all[2].level = 1;
    es.all[1].max_connections = es.all[2].max_connections = 1;
    es.conf.stays = true;
    es.conf.spills = _i >= KINDS;
    b = endpoints_balancer(&es, _i % KINDS);
    balancer_settle(b);
    go_down(0);
    come_up(0);
    ck_assert_int_gt(endpoints_pick(&es, b, 1), 0);
    if (_i % KINDS != BALANCER_FIRST || es.conf.spills)
        (void)endpoints_pick(&es, b, 2);
    ck_assert_int_eq(endpoints_pick(&es, b, 3), es.conf.spills ? 0 : -EBUSY);
    ck_assert(!endpoint_is_in_use(&es.all[0]));
}

TEST_EACH(stays, ejected_and_absent_endpoints_have_failed, 2 * KINDS)
{
    enum endpoint_flag flag = _i < KINDS ? ENDPOINT_EJECTED : ENDPOINT_ABSENT;
    unsigned backups = OF(_i % KINDS) ? ONLY(2) : BACKUPS;

    open_levels(_i % KINDS);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[0], flag);
    ck_assert_uint_eq(picked_of(b), backups); /* the pick settles */
    endpoint_clear_flag(&es.all[0], flag);
    ck_assert_uint_eq(picked_of(b), backups);
}

TEST_EACH(stays, while_none_is_fit_those_last_in_use_stay_so, KINDS)
{
    unsigned backups = OF(_i) ? ONLY(2) : BACKUPS;

    open_levels(_i);
    go_down(0);
    go_down(1);
    go_down(3);
    go_down(2);
    ck_assert_int_eq(endpoints_pick(&es, b, 1), -ENOENT);
    ck_assert_uint_eq(in_use(), backups);
    come_up(2);
    ck_assert_uint_eq(picked_of(b), ONLY(2));
    go_down(2);
    come_up(1);
    ck_assert_uint_eq(picked_of(b), ONLY(1));
}

TEST_EACH(stays, the_last_resort_is_one_that_is_only_ejected, KINDS)
{
    open_levels(_i);
    go_down(0);
    go_down(1);
    go_down(3);
    endpoint_set_flag(&es.all[2], ENDPOINT_EJECTED);
    ck_assert_uint_eq(picked_of(b), ONLY(2));
}

TEST_EACH(stays, in_panic_the_last_in_use_get_the_sessions, KINDS)
{
    open_levels(_i);
    balancer_destroy(b);
    es.conf.panic_threshold = 50;
    b = endpoints_balancer(&es, _i);
    balancer_settle(b);
    for (unsigned i = 0; i < 4; i++)
        go_down(i);
    ck_assert(balancer_panics(b));
    ck_assert_uint_eq(picked_of(b), OF(_i) ? ONLY(3) : BACKUPS);
}

/* Checks and names of better ones may not be known when a process begins. */
TEST_EACH(stays, better_ones_take_over_until_a_session_has_come, 2 * KINDS)
{
    bool has_come = _i >= KINDS;

    endpoints_open(&es, 2);
    es.all[1].level = 1;
    es.conf.stays = true;
    b = endpoints_balancer(&es, _i % KINDS);
    endpoint_set_flag(&es.all[0], ENDPOINT_DOWN);
    endpoint_set_flag(&es.all[1], ENDPOINT_DOWN);
    balancer_settle(b);
    ck_assert_uint_eq(in_use(), 0);
    come_up(1);
    ck_assert_uint_eq(in_use(), ONLY(1));
    if (has_come)
        ck_assert_uint_eq(picked_of(b), ONLY(1));
    come_up(0);
    ck_assert_uint_eq(in_use(), has_come ? ONLY(1) : ONLY(0));
    ck_assert_uint_eq(picked_of(b), has_come ? ONLY(1) : ONLY(0));
    go_down(0);
    go_down(1);
    come_up(1);
    come_up(0);
    ck_assert_uint_eq(picked_of(b), ONLY(1));
}

TEST_EACH(stays, endpoints_that_fail_before_the_first_session_have_failed, KINDS)
{
    open_levels(_i);
    go_down(0);
    go_down(1);
    come_up(0);
    ck_assert_uint_eq(picked_of(b), OF(_i) ? ONLY(2) : BACKUPS);
}

/* ---- another balancer ---- */

TEST_EACH(stays, a_new_balancer_goes_on_with_those_in_use_at_any_level, KINDS)
{
    unsigned backups = OF(_i) ? ONLY(2) : BACKUPS;

    open_levels(_i);
    go_down(0);
    go_down(1);
    come_up(0);
    come_up(1);
    es.all[0].level = es.all[1].level = 7;
    es.all[2].level = es.all[3].level = 2;
    es.conf.generation++;
    other = endpoints_balancer(&es, _i);
    balancer_settle(other);
    ck_assert_uint_eq(picked_of(other), backups);
    ck_assert_uint_eq(picked_of(b), backups); /* a pick that began before */
    ck_assert_uint_eq(es.group.n_moves, OF(_i) ? 2 : 1);
}

TEST_EACH(stays, one_without_weight_has_failed_and_returns_as_such, KINDS)
{
    open_levels(_i);
    (void)picked_of(b);
    es.all[0].weight = es.all[1].weight = 0;
    other = endpoints_balancer(&es, _i);
    balancer_settle(other);
    ck_assert_uint_eq(picked_of(other), OF(_i) ? ONLY(2) : BACKUPS);
    balancer_destroy(other);
    es.all[0].weight = es.all[1].weight = 1;
    other = endpoints_balancer(&es, _i);
    balancer_settle(other);
    ck_assert_uint_eq(picked_of(other), OF(_i) ? ONLY(2) : BACKUPS);
}

TEST_EACH(stays, one_put_in_use_brings_its_level_along, KINDS)
{
    open_levels(_i);
    endpoint_put_in_use(&es.all[3], true);
    balancer_settle(b);
    ck_assert_uint_eq(in_use(), OF(_i) ? ONLY(3) : BACKUPS);
    ck_assert_uint_eq(picked_of(b), OF(_i) ? ONLY(3) : BACKUPS);
    ck_assert_uint_eq(es.group.n_moves, 0);
}

TEST_EACH(stays, of_those_put_in_use_the_lowest_level_stays_so, KINDS)
{
    open_levels(_i);
    endpoint_put_in_use(&es.all[1], true);
    endpoint_put_in_use(&es.all[2], false);
    balancer_settle(b);
    ck_assert_uint_eq(picked_of(b), OF(_i) ? ONLY(1) : FIRSTS);
    ck_assert_uint_eq(es.group.n_moves, 0);
}

TEST_EACH(stays, others_of_the_level_in_use_are_no_move, 2 * KINDS)
{
    bool stays = _i < KINDS;

    open_levels(_i % KINDS);
    es.conf.stays = stays;
    es.all[0].weight = 0;
    other = endpoints_balancer(&es, _i % KINDS);
    balancer_settle(other);
    balancer_destroy(other);
    es.all[0].weight = 1; /* beside it */
    es.all[1].weight = 0; /* in its place */
    es.conf.generation++;
    other = endpoints_balancer(&es, _i % KINDS);
    balancer_settle(other);
    ck_assert_uint_eq(es.group.n_moves, stays && OF(_i % KINDS) ? 2 : 0);
}

/* ---- threads ---- */

#define THREADS 3
#define ROUNDS  IF_SANITIZED(2000, 20000)

static atomic_bool is_over;

static void *pick_on(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over)) {
        (void)endpoints_touch(&es, b, 1);
    }
    return NULL;
}

/* While one fails and returns, and then the other, no thread takes the returned one. */
TEST_EACH(stays, threads_agree_on_the_endpoints_in_use, KINDS)
{
    pthread_t threads[THREADS];

    endpoints_open(&es, 2);
    es.all[1].level = 1;
    es.conf.stays = true;
    b = endpoints_balancer(&es, _i);
    balancer_settle(b);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, pick_on, NULL), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        endpoint_set_flag(&es.all[round % 2], ENDPOINT_DOWN);
        if (round % 3 == 0)
            balancer_settle(b);
        (void)endpoints_touch(&es, b, round);
        endpoint_clear_flag(&es.all[round % 2], ENDPOINT_DOWN);
        ck_assert_int_eq(endpoints_touch(&es, b, round), 1 - (int)(round % 2));
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(es.group.load, 0);
}
