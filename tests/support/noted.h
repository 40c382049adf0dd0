/*
 * support/noted: a promise, and listeners that note when they were told.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_NOTED_H
#define SUPPORT_NOTED_H

#include <semaphore.h>

#include "engine/promise.h"
#include "support/tasks.h"

struct loop;

/* Where the promise's listeners are told, and who completes it. */
enum place {
    ON_ITS_LOOP,
    FROM_OUTSIDE,
    WITHOUT_LOOP,
    LOOP_ENDED,
    LOOP_NEVER_RAN, /* and has ended */
    PLACES
};

/* Adds its letter to the trace; if it adds another listener, its capital letter after that. */
struct noting {
    struct promise_listener listener;
    char letter;
    struct noting *adds;
};

struct noted {
    struct loop *loop, *promise_loop;
    struct promise promise;
    struct tasks_trace trace;
    struct noting a, b, c, d;
};

extern struct noted noted;

void noted_setup(void);

void noted_teardown(void);

void noted_go_to(enum place place);

void noted_succeed(void *arg);

/* Complete ${p}; unless that is FROM_OUTSIDE, it has told all listeners when it returns. */
void noted_succeed_in(enum place place, struct promise *p);

/* What was submitted to the loop so far has run. */
void noted_settle(enum place place);

void noted_note(struct promise_listener *l, struct promise *p);

void noted_noting_init(struct noting *n, char letter);

void noted_noting_reset(void);

#endif
