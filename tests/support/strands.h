/*
 * support/strands: an executor, strands of it, and tasks that tell whether they keep their order.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_STRANDS_H
#define SUPPORT_STRANDS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/task.h"
#include "support/tasks.h"

struct executor;
struct loop;
struct strand;

#define MAX_TASKS 300

/* What the tasks of one strand find. Not atomic: only their order keeps them apart. */
struct record {
    unsigned next;
    unsigned inside;
    unsigned run_at_turn; /* how many had run when the task between them did */
};

struct numbered {
    struct task task;
    struct record *record;
    unsigned number;
    atomic_uint *run;
    atomic_uint *dropped;
    bool slow;
};

struct strands {
    struct loop *loop;
    struct executor *executor;
    struct strand *strand;
    struct tasks_block block;
    struct record seen;
    struct numbered tasks[MAX_TASKS];
    atomic_uint n_run, n_dropped, n_notified;
};

extern struct strands strands;

void strands_setup(void);

void strands_teardown(void);

void strands_numbered_init(struct numbered *n, struct record *record, unsigned number);

void strands_count_notified(void *cookie);

void strands_create(struct strand **out, unsigned max, void (*on_capacity)(void *cookie));

void strands_destroy(struct strand *s);

int strands_submit(struct strand *s, struct task *t);

/* tasks[from] to tasks[to - 1], of one record. */
void strands_submit_numbered(unsigned from, unsigned to);

void strands_fill_executor(void);

/* As far as the loop has got with what it was told before. */
unsigned strands_notified(void);

#endif
