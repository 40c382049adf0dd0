/* net/pipe_pool: a few empty pipes are kept, one that holds bytes never is. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

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

START_TEST(a_new_pool_owns_nothing)
{
    ck_assert_uint_eq(process_descriptors(), before);
}
END_TEST

START_TEST(an_empty_pipe_is_kept_and_given_out_again)
{
    struct pipe *p = get();

    pipe_pool_put(&pool, p);
    ck_assert_uint_eq(process_descriptors(), before + 2);
    ck_assert_ptr_eq(get(), p);
    pipe_pool_put(&pool, p);
}
END_TEST

START_TEST(a_pipe_passes_bytes_and_does_not_block)
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
END_TEST

START_TEST(a_pipe_that_holds_bytes_is_closed)
{
    struct pipe *p = get();

    p->bytes = 1;
    pipe_pool_put(&pool, p);
    ck_assert_uint_eq(process_descriptors(), before);
}
END_TEST

START_TEST(only_a_few_are_kept)
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
END_TEST

START_TEST(without_descriptors_there_is_no_pipe_and_none_is_lost)
{
    struct pipe *p;

    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(pipe_pool_get(&pool, &p), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), before);
}
END_TEST

START_TEST(a_kept_pipe_needs_no_descriptor)
{
    struct pipe *p = get();

    pipe_pool_put(&pool, p);
    process_allow_descriptors(0);
    ck_assert_ptr_eq(get(), p);
    process_allow_any_descriptors();
    pipe_pool_put(&pool, p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("net/pipe_pool");
    TCase *tc = suite_group(suite, "pipe pool");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_new_pool_owns_nothing);
    tcase_add_test(tc, an_empty_pipe_is_kept_and_given_out_again);
    tcase_add_test(tc, a_pipe_passes_bytes_and_does_not_block);
    tcase_add_test(tc, a_pipe_that_holds_bytes_is_closed);
    tcase_add_test(tc, only_a_few_are_kept);
    tcase_add_loop_test(tc, without_descriptors_there_is_no_pipe_and_none_is_lost, 0, 2);
    tcase_add_test(tc, a_kept_pipe_needs_no_descriptor);
    return suite_run(suite);
}
