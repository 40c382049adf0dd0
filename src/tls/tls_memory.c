#include "tls/tls_memory.h"

#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "net/memory_account.h"

static _Thread_local int64_t tls_memory_batch;

static _Atomic int64_t tls_memory_sum;
static _Atomic int64_t tls_memory_max = INT64_MAX;
static _Atomic(struct memory_account *) tls_memory_account;

static void tls_memory_begin_episode(void)
{
    struct memory_account *account =
        atomic_load_explicit(&tls_memory_account, memory_order_acquire);

    if (account && !atomic_exchange(&account->is_over, true))
        account->over(account->cookie);
}

static void tls_memory_add(int64_t bytes)
{
    int64_t batch = tls_memory_batch + bytes, sum;

    if (batch < TLS_MEMORY_BATCH && batch > -TLS_MEMORY_BATCH) {
        tls_memory_batch = batch;
        return;
    }
    tls_memory_batch = 0;
    sum = atomic_fetch_add_explicit(&tls_memory_sum, batch, memory_order_relaxed) + batch;
    if (batch > 0 && sum > atomic_load_explicit(&tls_memory_max, memory_order_relaxed))
        tls_memory_begin_episode();
}

static int64_t tls_memory_size(void *p)
{
    return (int64_t)malloc_usable_size(p);
}

static void *tls_memory_malloc(size_t size, const char *file, int line)
{
    void *p = malloc(size);

    (void)file;
    (void)line;
    tls_memory_add(tls_memory_size(p));
    return p;
}

static void tls_memory_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    tls_memory_add(-tls_memory_size(p));
    free(p);
}

/* Like CRYPTO_realloc(), free ${p} if ${size} is 0. */
static void *tls_memory_realloc(void *p, size_t size, const char *file, int line)
{
    int64_t before = tls_memory_size(p);
    void *now;

    if (size == 0) {
        tls_memory_free(p, file, line);
        return NULL;
    }
    now = realloc(p, size);
    if (now)
        tls_memory_add(tls_memory_size(now) - before);
    return now;
}

int tls_memory_count(void)
{
    return CRYPTO_set_mem_functions(tls_memory_malloc, tls_memory_realloc, tls_memory_free) == 1
               ? 0
               : -EBUSY;
}

int64_t tls_memory_bytes(void)
{
    return atomic_load_explicit(&tls_memory_sum, memory_order_relaxed);
}

void tls_memory_limit(struct memory_account *account, int64_t max_bytes)
{
    atomic_store_explicit(&tls_memory_account, account, memory_order_release);
    atomic_store_explicit(&tls_memory_max, account ? max_bytes : INT64_MAX, memory_order_relaxed);
}
