/* preload/memory_fault: no memory is left: malloc() and its like return NULL. */
#include <stddef.h>

#include "plan.h"

/* As in test_process_faults.py. */
enum fault { MEMORY_FAILS };

/* dlsym() allocates itself: these are glibc's own names for the same functions. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int fails(void)
{
    if (!plan_strikes(MEMORY_FAILS))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}
