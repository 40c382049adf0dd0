/*
 * note: place. A strand with tasks has one place, an entry of the executor's queue. A thread that
 * takes the place runs one task after the other, then removes the place or queues it again. The
 * executor's lock guards the place, and the limits of strand and executor.
 *
 * note: users. The owner, the place and the waiter each hold a reference while in use; releasing
 * the last reference frees the strand.
 */
#include "engine/strand.h"

#include <errno.h>
#include <stdlib.h>

#include "base/ref.h"
#include "engine/executor_internal.h"
#include "engine/loop.h"
#include "engine/strand_internal.h"

struct strand {
    /* Under the executor's lock. */
    struct task place;
    struct task_list tasks;
    unsigned n_tasks;
    unsigned in_a_row; /* tasks begun since the place was queued */
    bool placed;       /* the place is queued, or taken by a thread */
    bool was_full;     /* the full strand refused a task: submit the waiter when half empty */

    /* Accessed by the loop's thread only. */
    bool refused; /* on_capacity() will be called */
    bool gone;
    struct executor_waiter waiter;

    struct strand_conf conf;
    struct ref references; /* see note: users */
};

static void strand_release(struct strand *s)
{
    if (ref_release(&s->references))
        free(s);
}

static void strand_hold(struct strand *s)
{
    ref_hold(&s->references);
}

static void strand_on_capacity(struct task *t)
{
    struct strand *s = TIMER_OWNER(t, struct strand, waiter.timer);

    s->refused = false;
    if (!s->gone)
        s->conf.on_capacity(s->conf.cookie);
    if (!s->gone && !s->refused)
        executor_return_share(s->conf.executor, &s->waiter);
    strand_release(s);
}

static void strand_on_no_loop(struct task *t)
{
    strand_release(TIMER_OWNER(t, struct strand, waiter.timer));
}

static const struct task_type strand_waiter_type = {
    .name = "strand waiter", .run = strand_on_capacity, .drop = strand_on_no_loop};

/* Marks the place of a strand; never runs. */
static const struct task_type place_type = {.name = "strand"};

int strand_create(struct strand **out, const struct strand_conf *conf)
{
    struct strand *s;

    MUST(loop_is_current(conf->loop));
    MUST(conf->max_pending_tasks > 0);
    s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    s->place.type = &place_type;
    timer_init(&s->waiter.timer, &strand_waiter_type);
    s->waiter.loop = conf->loop;
    s->conf = *conf;
    ref_init(&s->references);
    *out = s;
    return 0;
}

static void strand_append(struct strand *s, struct task *t)
{
    task_list_append(&s->tasks, t);
    s->n_tasks++;
    if (s->placed)
        return;
    s->placed = true;
    s->in_a_row = 0;
    strand_hold(s);
    executor_push(s->conf.executor, &s->place);
}

int strand_submit(struct strand *s, struct task *t)
{
    struct executor *e = s->conf.executor;
    bool full, first_refused = false;
    int rc;

    MUST(loop_is_current(s->conf.loop));
    t->queued_at_ns = clock_now_ns();
    executor_lock(e);
    full = s->n_tasks >= s->conf.max_pending_tasks && e->state == EXECUTOR_OPEN;
    rc = full ? -EAGAIN : executor_admit(e, &s->waiter);
    if (rc == 0) {
        strand_append(s, t);
    } else if (rc == -EAGAIN && !s->refused) {
        s->refused = first_refused = true;
        s->was_full = full;
        strand_hold(s);
        executor_give_back(e, &s->waiter);
    }
    executor_unlock(e);
    if (first_refused && !full)
        executor_await_capacity(e, &s->waiter, s->conf.loop);
    return rc;
}

struct strand *strand_of(struct task *place)
{
    return place->type == &place_type ? CONTAINER_OF(place, struct strand, place) : NULL;
}

static void strand_count_out(struct strand *s, unsigned n)
{
    s->n_tasks -= n;
    executor_count_out(s->conf.executor, n);
    if (s->was_full && s->n_tasks <= s->conf.max_pending_tasks / 2) {
        s->was_full = false;
        executor_tell(s->conf.executor, &s->waiter);
    }
}

struct task *strand_take(struct strand *s)
{
    if (s->n_tasks == 0) {
        s->placed = false;
        strand_release(s);
        return NULL;
    }
    if (s->in_a_row == STRAND_BATCH) {
        s->in_a_row = 0;
        executor_push(s->conf.executor, &s->place);
        return NULL;
    }
    s->in_a_row++;
    strand_count_out(s, 1);
    return task_list_take(&s->tasks);
}

void strand_take_all(struct strand *s, struct task_list *out)
{
    struct task *t;

    while ((t = task_list_take(&s->tasks)))
        task_list_append(out, t);
    s->conf.executor->tasks_dropped += s->n_tasks;
    strand_count_out(s, s->n_tasks);
}

int64_t strand_oldest_at_ns(const struct strand *s)
{
    return s->tasks.first ? s->tasks.first->queued_at_ns : CLOCK_NEVER;
}

void strand_destroy(struct strand *s)
{
    struct executor *e = s->conf.executor;
    struct task_list rest = {0};
    struct task *t;

    MUST(loop_is_current(s->conf.loop) || loop_state(s->conf.loop) == LOOP_TERMINATED);
    s->gone = true;
    executor_lock(e);
    strand_take_all(s, &rest);
    s->waiter.gone = true;
    executor_leave(e, &s->waiter);
    executor_unlock(e);
    while ((t = task_list_take(&rest)))
        task_drop(t);
    strand_release(s);
}
