/* tls/tls_memory: what the library allocates is counted, over all threads, and may have a limit. */
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <pthread.h>

#include "net/memory_account.h"
#include "support/fault.h"
#include "support/suite.h"
#include "tls/tls_memory.h"

#define BLOCKS 100
#define BLOCK  10000

static unsigned n_over;
static void *blocks[4 * BLOCKS];
static unsigned n_blocks;

static void count_over(void *cookie)
{
    (void)cookie;
    n_over++;
}

static void *allocate(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < BLOCKS; i++)
        ck_assert_ptr_nonnull(blocks[n_blocks++] = OPENSSL_malloc(BLOCK));
    return NULL;
}

static void free_all(void)
{
    while (n_blocks > 0)
        OPENSSL_free(blocks[--n_blocks]);
}

static void setup(void)
{
    ck_assert_int_eq(tls_memory_count(), 0);
}

static void expect_about(int64_t bytes)
{
    int64_t now = tls_memory_bytes();

    ck_assert_msg(now > bytes - 2 * TLS_MEMORY_BATCH &&
                      now < bytes * 11 / 10 + 2 * TLS_MEMORY_BATCH,
                  "%lld are counted, of %lld", (long long)now, (long long)bytes);
}

GROUP(counting, setup, free_all);

TEST(counting, memory_freed_by_another_thread_is_counted)
{
    pthread_t other;

    ck_assert_int_eq(pthread_create(&other, NULL, allocate, NULL), 0);
    pthread_join(other, NULL);
    expect_about(BLOCKS * BLOCK);
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = OPENSSL_realloc(blocks[i], 2 * BLOCK);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    expect_about(2 * BLOCKS * BLOCK);
    free_all();
    expect_about(0);
}

TEST(counting, failed_and_empty_allocations_are_not_counted)
{
    int64_t before;
    void *p;

    fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    ck_assert_ptr_null(OPENSSL_malloc(BLOCK)); /* its error has memory of its own */
    before = tls_memory_bytes();
    for (unsigned i = 0; i < 10; i++) {
        OPENSSL_free(NULL);
        ck_assert_ptr_nonnull(p = OPENSSL_realloc(NULL, BLOCK));
        fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
        ck_assert_ptr_null(OPENSSL_realloc(p, 2 * BLOCK));
        fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
        ck_assert_ptr_null(OPENSSL_malloc(BLOCK));
        ck_assert_ptr_null(OPENSSL_realloc(p, 0));
    }
    expect_about(before);
}

TEST(counting, exceeding_the_limit_begins_one_episode)
{
    struct memory_account account = {.over = count_over};

    tls_memory_limit(&account, BLOCKS * BLOCK * 2);
    allocate(NULL);
    ck_assert_uint_eq(n_over, 0);
    ck_assert(!memory_account_is_over(&account));
    allocate(NULL);
    allocate(NULL);
    ck_assert_uint_eq(n_over, 1);
    ck_assert(memory_account_is_over(&account));
    tls_memory_limit(NULL, 0);
    atomic_store(&account.is_over, false);
    allocate(NULL);
    ck_assert_uint_eq(n_over, 1);
}

GROUP(late, NULL, free_all);

TEST(late, memory_is_not_counted_if_the_library_has_allocated_before)
{
    BIO_free(BIO_new(BIO_s_mem()));
    ck_assert_int_eq(tls_memory_count(), -EBUSY);
    allocate(NULL);
    ck_assert_int_eq(tls_memory_bytes(), 0);
}
