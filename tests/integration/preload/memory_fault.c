/* preload/memory_fault: no memory is left: malloc() and its like return NULL. */
#include <stddef.h>
#include <sys/auxv.h>

#include "plan.h"

/* As in test_process_faults.py and test_call_faults.py. The second: in the program's own code. */
enum fault { MEMORY_FAILS, OWN_MEMORY_FAILS };

/* dlsym() allocates itself: these are glibc's own names for the same functions. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* Is ${caller} in the program, and not in a library? */
static bool is_own(const void *caller)
{
    Dl_info of_caller, of_program;

    return dladdr(caller, &of_caller) && dladdr((const void *)getauxval(AT_ENTRY), &of_program) &&
           of_caller.dli_fbase == of_program.dli_fbase;
}

static int fails(const void *caller)
{
    bool own = atomic_load(&plan_map()[OWN_MEMORY_FAILS].times) > 0 && is_own(caller);

    if (!plan_strikes(MEMORY_FAILS) && !(own && plan_strikes(OWN_MEMORY_FAILS)))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, size);
}
