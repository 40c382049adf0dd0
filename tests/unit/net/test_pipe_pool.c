/* net/pipe_pool: a few empty pipes are kept, one that holds bytes never is. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "net/descriptor_budget.h"
#include "net/pipe_pool.h"
#include "support/process.h"
#include "support/suite.h"

static struct pipe_pool pool;
static unsigned before;

static void setup(void)
{
    before = process_descriptors();
    pipe_pool_init(&pool);
}

static void teardown(void)
{
    pipe_pool_close(&pool);
    ck_assert_uint_eq(process_descriptors(), before);
}

static struct pipe *get(void)
{
    struct pipe *p;

    ck_assert_int_eq(pipe_pool_get(&pool, &p), 0);
    ck_assert_uint_eq(p->bytes, 0);
    return p;
}

GROUP(pipe_pool, setup, teardown);

TEST(pipe_pool, a_new_pool_owns_nothing)
{
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST(pipe_pool, an_empty_pipe_is_kept_and_given_out_again)
{
    struct pipe *p = get();

    pipe_pool_put(&pool, p);
    ck_assert_uint_eq(process_descriptors(), before + 2);
    ck_assert_ptr_eq(get(), p);
    pipe_pool_put(&pool, p);
}

TEST(pipe_pool, a_pipe_passes_bytes_and_does_not_block)
{
    struct pipe *p = get();
    char byte;

    ck_assert_int_eq(read(p->read_fd, &byte, 1), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(write(p->write_fd, "x", 1), 1);
    ck_assert_int_eq(read(p->read_fd, &byte, 1), 1);
    ck_assert_int_eq(byte, 'x');
    ck_assert_int_ne(fcntl(p->write_fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(p->read_fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(fcntl(p->write_fd, F_GETFD) & FD_CLOEXEC, 0);
    pipe_pool_put(&pool, p);
}

TEST(pipe_pool, a_pipe_that_holds_bytes_is_closed)
{
    struct pipe *p = get();

    p->bytes = 1;
    pipe_pool_put(&pool, p);
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST(pipe_pool, only_a_few_pipes_are_kept)
{
    struct pipe *pipes[50];

    for (int i = 0; i < 50; i++)
        pipes[i] = get();
    ck_assert_uint_eq(process_descriptors(), before + 100);
    for (int i = 0; i < 50; i++)
        pipe_pool_put(&pool, pipes[i]);
    ck_assert_uint_le(process_descriptors(), before + 2 * 8);
    ck_assert_uint_gt(process_descriptors(), before);
}

TEST_EACH(pipe_pool, without_descriptors_there_is_no_pipe_and_none_is_lost, 2)
{
    struct pipe *p;

    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(pipe_pool_get(&pool, &p), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST(pipe_pool, a_kept_pipe_needs_no_descriptor)
{
    struct pipe *p = get();

    pipe_pool_put(&pool, p);
    process_allow_descriptors(0);
    ck_assert_ptr_eq(get(), p);
    process_allow_any_descriptors();
    pipe_pool_put(&pool, p);
}

/* ---- lent ---- */

static struct descriptor_budget descriptors;

/* A pool whose own pipe is taken, where so many descriptors are used by clients. */
static void lend_of_100(unsigned used, struct pipe **own)
{
    descriptors = (struct descriptor_budget){.max = 100, .reserve = 10};
    descriptor_budget_count(&descriptors, used);
    pool.descriptors = &descriptors;
    *own = get();
}

TEST(pipe_pool, the_first_pipe_of_a_loop_is_not_lent_and_all_others_are)
{
    struct pipe *own, *lent;

    lend_of_100(100, &own); /* none is left, and this one is there all the same */
    ck_assert_uint_eq(descriptors.used, 100);
    descriptors.used = 0;
    lent = get();
    ck_assert_uint_eq(descriptors.used, 2);
    ck_assert_uint_eq(descriptors.lent, 2);
    lent->bytes = 1;
    pipe_pool_put(&pool, lent);
    ck_assert_uint_eq(descriptors.used, 0);
    ck_assert_uint_eq(descriptors.lent, 0);
    own->bytes = 1;
    pipe_pool_put(&pool, own);
    own = get(); /* it takes the place of the first */
    ck_assert_uint_eq(descriptors.used, 0);
    pipe_pool_put(&pool, own);
}

TEST(pipe_pool, a_pipe_that_leaves_too_few_for_clients_is_refused)
{
    struct pipe *own, *lent, *more;

    lend_of_100(78, &own);
    lent = get(); /* leaves twice the reserve */
    ck_assert_int_eq(pipe_pool_get(&pool, &more), -EMFILE);
    ck_assert_uint_eq(descriptors.used, 80);
    pipe_pool_put(&pool, own);
    ck_assert_ptr_eq(get(), own); /* one that is there already takes none */
    pipe_pool_put(&pool, lent);
    pipe_pool_put(&pool, own);
}

TEST(pipe_pool, a_pipe_that_cannot_be_opened_is_not_lent)
{
    struct pipe *own, *lent;

    lend_of_100(0, &own);
    process_allow_descriptors(0);
    ck_assert_int_eq(pipe_pool_get(&pool, &lent), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(descriptors.used, 0);
    ck_assert_uint_eq(descriptors.lent, 0);
    pipe_pool_put(&pool, own);
}

TEST(pipe_pool, a_lent_pipe_is_not_kept_while_its_descriptors_are_wanted_back)
{
    struct pipe *own, *lent[2];

    lend_of_100(0, &own);
    lent[0] = get();
    lent[1] = get();
    pipe_pool_put(&pool, lent[0]); /* kept */
    ck_assert_uint_eq(descriptors.lent, 4);
    descriptor_budget_count(&descriptors, 90);
    pipe_pool_put(&pool, own);     /* kept */
    pipe_pool_put(&pool, lent[1]); /* closed */
    ck_assert_uint_eq(descriptors.lent, 2);
    pipe_pool_trim(&pool);
    ck_assert_uint_eq(descriptors.lent, 0);
    ck_assert_uint_eq(descriptors.used, 90);
    ck_assert_uint_eq(process_descriptors(), before + 2);
    ck_assert_ptr_eq(get(), own);
    pipe_pool_put(&pool, own);
}

TEST(pipe_pool, lent_pipes_that_are_held_are_found)
{
    struct pipe *own, *lent;

    lend_of_100(0, &own);
    lent = get();
    pipe_pool_hold(&pool, own, NULL);
    ck_assert_ptr_null(pipe_pool_first_lent(&pool));
    pipe_pool_hold(&pool, lent, NULL);
    ck_assert_ptr_eq(pipe_pool_first_lent(&pool), lent);
    pipe_pool_put(&pool, lent);
    ck_assert_ptr_null(pipe_pool_first_lent(&pool));
    pipe_pool_put(&pool, own);
}

TEST(pipe_pool, own_pipe_that_is_given_away_becomes_a_lent_one_and_the_loop_gets_another)
{
    struct descriptor_budget budget = {.max = 100};
    struct channel *holder = (struct channel *)&budget; /* only compared */
    struct pipe_pool other;
    struct pipe *p, *q;

    pipe_pool_init(&other);
    pool.descriptors = other.descriptors = &budget;
    p = get();
    ck_assert(!p->lent);
    pipe_pool_hold(&pool, p, holder);
    ck_assert(pipe_pool_give(&pool, p));
    ck_assert(p->lent && !p->holder);
    q = get();
    ck_assert(!q->lent);
    pipe_pool_hold(&other, p, holder);
    ck_assert_ptr_eq(pipe_pool_first_lent(&other), p);
    pipe_pool_put(&other, p);
    pipe_pool_put(&pool, q);
    pipe_pool_close(&other);
    pool.descriptors = NULL;
}

TEST(pipe_pool, own_pipe_stays_if_the_budget_lends_none)
{
    struct descriptor_budget budget = {.max = 0};
    struct pipe *p = get();

    pool.descriptors = &budget;
    pipe_pool_hold(&pool, p, (struct channel *)&budget);
    ck_assert(!pipe_pool_give(&pool, p));
    ck_assert(!p->lent && p->holder);
    pipe_pool_put(&pool, p);
    pool.descriptors = NULL;
}
