/*
 * preload/plan: which system calls of a running daemon are to go wrong: a file that the test and
 * the daemon have mapped.
 *
 * A library that is preloaded defines the calls it spoils, and passes on those that no fault is
 * planned for. The file is an array of struct plan_fault, one for each kind of fault that the
 * library knows; support/preload.py writes it.
 */
#ifndef PRELOAD_PLAN_H
#define PRELOAD_PLAN_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The environment variable that names the file, and its size. */
#define PLAN_VARIABLE "REACTORD_TEST_PLAN"
#define PLAN_BYTES    4096

/* As `times`: until the test takes it back. */
#define PLAN_ALWAYS 0xffffffffu

struct plan_fault {
    atomic_uint skip;   /* calls to pass on first */
    atomic_uint times;  /* calls to spoil; 0: none */
    atomic_uint struck; /* calls that were spoiled */
    int value;          /* errno, or what else the fault needs */
    char thread[16];    /* how the names of the threads begin that it is meant for */
    unsigned per_mille; /* of the calls, so many; 0: all */
};

/* The function that a call goes to when nothing is planned. */
#define PLAN_NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static struct plan_fault *plan_map(void)
{
    static _Atomic(struct plan_fault *) mapped; /* two threads may both map it: no harm */
    struct plan_fault *plan = atomic_load(&mapped);
    int fd;

    if (plan)
        return plan;
    /* By their numbers: open() and mmap() may themselves be calls to spoil. */
    fd = (int)syscall(SYS_openat, AT_FDCWD, getenv(PLAN_VARIABLE), O_RDWR | O_CLOEXEC);
    plan = (struct plan_fault *)syscall(SYS_mmap, NULL, PLAN_BYTES, PROT_READ | PROT_WRITE,
                                        MAP_SHARED, fd, 0);
    if (fd < 0 || plan == MAP_FAILED)
        abort();
    close(fd);
    atomic_store(&mapped, plan);
    return plan;
}

/* Count ${left} down by one unless it is 0 or has no end. */
static bool plan_take(atomic_uint *left)
{
    unsigned n = atomic_load(left);

    while (n > 0)
        if (atomic_compare_exchange_weak(left, &n, n == PLAN_ALWAYS ? n : n - 1))
            return true;
    return false;
}

static bool plan_is_for_this_thread(const struct plan_fault *f)
{
    char name[16] = "";

    prctl(PR_GET_NAME, name);
    return strncmp(name, f->thread, strlen(f->thread)) == 0;
}

/* Is this call one of the ${per_mille}? Each thread draws the same numbers in each run. */
static bool plan_draws(unsigned per_mille)
{
    static _Thread_local unsigned seed = 1;

    return per_mille == 0 || (unsigned)rand_r(&seed) % 1000 < per_mille;
}

/* The fault that is to strike this call, or NULL. Leaves errno alone. */
static const struct plan_fault *plan_strikes(unsigned kind)
{
    int error = errno;
    struct plan_fault *f = plan_map() + kind;
    bool strikes = atomic_load(&f->times) > 0 && plan_is_for_this_thread(f) &&
                   plan_draws(f->per_mille) && !plan_take(&f->skip) && plan_take(&f->times);

    if (strikes)
        atomic_fetch_add(&f->struck, 1);
    errno = error;
    return strikes ? f : NULL;
}

#endif
