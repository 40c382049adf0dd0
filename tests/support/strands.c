#include "support/strands.h"

#include <check.h>

#include "engine/strand.h"
#include "support/executor_runner.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/until.h"

struct strands strands;
static struct tasks_counted direct[16]; /* submitted to the executor itself */

void strands_setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE); /* a stop that cuts off is what some of these want */
    strands.loop = loop_runner_create();
    strands.seen = (struct record){0};
    atomic_store(&strands.n_run, 0);
    atomic_store(&strands.n_dropped, 0);
    atomic_store(&strands.n_notified, 0);
}

void strands_teardown(void)
{
    executor_runner_destroy(strands.executor);
    loop_runner_destroy(strands.loop);
    strands.strand = NULL; /* one that was not freed is to be found as a leak */
}

/* Called a million times, and each ck_assert() is a system call. */
static void numbered_run(struct task *t)
{
    struct numbered *n = CONTAINER_OF(t, struct numbered, task);

    if (n->record->inside++ > 0)
        ck_abort_msg("two tasks at a time");
    if (n->record->next++ != n->number)
        ck_abort_msg("not in order");
    if (n->slow)
        PAUSE_MS(1);
    n->record->inside--;
    atomic_fetch_add(n->run, 1);
}

static void numbered_drop(struct task *t)
{
    atomic_fetch_add(CONTAINER_OF(t, struct numbered, task)->dropped, 1);
}

void strands_numbered_init(struct numbered *n, struct record *record, unsigned number)
{
    static const struct task_type type = {"numbered", numbered_run, numbered_drop};

    *n = (struct numbered){.task.type = &type,
                           .record = record,
                           .number = number,
                           .run = &strands.n_run,
                           .dropped = &strands.n_dropped};
}

void strands_count_notified(void *cookie)
{
    (void)cookie;
    ck_assert(loop_is_current(strands.loop));
    atomic_fetch_add(&strands.n_notified, 1);
}

struct creation {
    struct strand **out;
    unsigned max;
    void (*on_capacity)(void *cookie);
};

static void do_create(void *arg)
{
    struct creation *c = arg;
    struct strand_conf conf = {.executor = strands.executor,
                               .loop = strands.loop,
                               .max_pending_tasks = c->max,
                               .on_capacity = c->on_capacity};

    ck_assert_int_eq(strand_create(c->out, &conf), 0);
}

void strands_create(struct strand **out, unsigned max, void (*on_capacity)(void *cookie))
{
    struct creation c = {.out = out, .max = max, .on_capacity = on_capacity};

    loop_runner_call(strands.loop, do_create, &c);
}

static void do_destroy(void *arg)
{
    strand_destroy(arg);
}

void strands_destroy(struct strand *s)
{
    loop_runner_call(strands.loop, do_destroy, s);
}

struct submission {
    struct strand *s;
    struct task *t;
    int rc;
};

static void do_submit(void *arg)
{
    struct submission *sub = arg;

    sub->rc = strand_submit(sub->s, sub->t);
}

int strands_submit(struct strand *s, struct task *t)
{
    struct submission sub = {.s = s, .t = t};

    loop_runner_call(strands.loop, do_submit, &sub);
    return sub.rc;
}

void strands_submit_numbered(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        strands_numbered_init(&strands.tasks[i], &strands.seen, i);
        ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[i].task), 0);
    }
}

void strands_fill_executor(void)
{
    for (int i = 0; i < 16; i++) {
        tasks_counted_init(&direct[i]);
        ck_assert_int_eq(executor_submit(strands.executor, &direct[i].task), 0);
    }
}

static void read_strand(void *arg)
{
    *(unsigned *)arg = atomic_load(&strands.n_notified);
}

unsigned strands_notified(void)
{
    unsigned n;

    loop_runner_call(strands.loop, read_strand, &n);
    return n;
}
