/*
 * support/graces: loops, and grace periods that wait for them.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_GRACES_H
#define SUPPORT_GRACES_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

struct loop;
struct loop_group;

#define LOOPS 3

#define CALLERS 4
#define CALLS   100

struct graces {
    struct loop_group *group;
    atomic_uint over;
    _Atomic(struct loop *) over_on; /* where it was called last */
    atomic_uint overs[CALLERS];
};

extern struct graces graces;

void graces_setup(void);

void graces_end_group(void);

void graces_teardown(void);

/* Have loop ${i} come round, and start it if need be. */
void graces_come_round(unsigned i);

void graces_start_all(void);

void graces_on_over(void *cookie);

void graces_begin(void);

void graces_callers_begin(pthread_t *callers);

void graces_callers_join(pthread_t *callers);

#endif
