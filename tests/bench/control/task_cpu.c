/*
 * task_cpu: the longest task of each type in processor time, which other processes do not lengthen.
 *
 * Linked into a reactord of its own by --wrap: a submitted task gets a type that measures its
 * run(). At the exit a line for each type goes to the file that REACTORD_TASK_CPU names:
 * microseconds, runs, name. Periodic timers are not measured again after their first run.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "engine/loop.h"

#define TYPES 256

struct measured {
    struct task_type type;
    const struct task_type *real;
    _Atomic int64_t max_ns;
    _Atomic uint64_t runs;
};

static struct measured list[TYPES];
static atomic_uint n;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static struct measured *restore(struct task *t)
{
    struct measured *m = CONTAINER_OF(t->type, struct measured, type);

    t->type = m->real;
    return m;
}

static void run(struct task *t)
{
    struct measured *m = restore(t);
    int64_t began_ns = clock_thread_ns(), took_ns, max_ns;

    m->real->run(t);
    took_ns = clock_thread_ns() - began_ns;
    atomic_fetch_add(&m->runs, 1);
    max_ns = atomic_load(&m->max_ns);
    while (took_ns > max_ns && !atomic_compare_exchange_weak(&m->max_ns, &max_ns, took_ns))
        continue;
}

static void drop(struct task *t)
{
    restore(t);
    task_drop(t);
}

static struct measured *find(const struct task_type *real)
{
    for (unsigned i = 0; i < atomic_load(&n); i++)
        if (list[i].real == real)
            return &list[i];
    return NULL;
}

static struct measured *add(const struct task_type *real)
{
    struct measured *m;

    pthread_mutex_lock(&adding);
    m = find(real);
    if (!m && atomic_load(&n) < TYPES) {
        m = &list[atomic_load(&n)];
        m->type = (struct task_type){.name = real->name, .run = run, .drop = drop};
        m->real = real;
        atomic_fetch_add(&n, 1);
    }
    pthread_mutex_unlock(&adding);
    return m;
}

static struct task *measure(struct task *t)
{
    struct measured *m;

    if (t->type->run == run)
        return t;
    m = find(t->type);
    if (!m)
        m = add(t->type);
    if (m)
        t->type = &m->type;
    return t;
}

/* A task that was not taken keeps its own type. */
static int taken(int rc, struct task *t)
{
    if (rc < 0 && t->type->run == run)
        (void)restore(t);
    return rc;
}

int __real_loop_submit(struct loop *loop, enum loop_queue queue, struct task *t);
int __wrap_loop_submit(struct loop *loop, enum loop_queue queue, struct task *t);
int __real_loop_submit_lazy(struct loop *loop, enum loop_queue queue, struct task *t);
int __wrap_loop_submit_lazy(struct loop *loop, enum loop_queue queue, struct task *t);
void __real_loop_reap(struct loop *loop, struct task *t);
void __wrap_loop_reap(struct loop *loop, struct task *t);
void __real_loop_schedule(struct loop *loop, struct timer *t, int64_t delay_ns);
void __wrap_loop_schedule(struct loop *loop, struct timer *t, int64_t delay_ns);

int __wrap_loop_submit(struct loop *loop, enum loop_queue queue, struct task *t)
{
    return taken(__real_loop_submit(loop, queue, measure(t)), t);
}

int __wrap_loop_submit_lazy(struct loop *loop, enum loop_queue queue, struct task *t)
{
    return taken(__real_loop_submit_lazy(loop, queue, measure(t)), t);
}

void __wrap_loop_reap(struct loop *loop, struct task *t)
{
    __real_loop_reap(loop, measure(t));
}

void __wrap_loop_schedule(struct loop *loop, struct timer *t, int64_t delay_ns)
{
    (void)measure(&t->task);
    __real_loop_schedule(loop, t, delay_ns);
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("REACTORD_TASK_CPU");
    FILE *f = path ? fopen(path, "we") : NULL;

    if (!f)
        return;
    for (unsigned i = 0; i < atomic_load(&n); i++)
        fprintf(f, "%lld %llu %s\n", (long long)(atomic_load(&list[i].max_ns) / NS_PER_US),
                (unsigned long long)atomic_load(&list[i].runs), list[i].type.name);
    fclose(f);
}
