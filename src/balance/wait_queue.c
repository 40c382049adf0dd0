#include "balance/wait_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/loop.h"

/* Interval at which a session that a pause holds looks whether the pause has ended. */
#define WAIT_QUEUE_LOOK_NS (1 * NS_PER_S)

/* A waiting session: queued under the lock, then submitted to its loop with a result. */
struct wait_ticket {
    struct task given; /* carries the result to the session's loop */
    struct endpoint *endpoint;
    int error;

    struct list link;
    bool is_queued; /* under the lock */
    bool is_left;   /* abandoned; used only by the loop */
    bool is_held;   /* a pause holds it, or has held it */
    struct wait_queue *queue;
    struct loop *loop;
    struct balancer_pick_state *pick; /* unused after is_left */
    struct timer timeout;
    int64_t from_ns; /* when `timeout` was set */
    int64_t limit_ns;
    wait_queue_done *done;
    void *cookie;
};

void wait_queue_set(struct wait_queue *q, unsigned max, int64_t timeout_ns)
{
    atomic_store_explicit(&q->max, max, memory_order_relaxed);
    atomic_store_explicit(&q->timeout_ns, timeout_ns, memory_order_relaxed);
}

static unsigned wait_queue_max(const struct wait_queue *q)
{
    return hold_is_closed(&q->hold) ? atomic_load_explicit(&q->max_held, memory_order_relaxed)
                                    : atomic_load_explicit(&q->max, memory_order_relaxed);
}

static bool wait_queue_has_space(const struct wait_queue *q)
{
    return wait_queue_length(q) < wait_queue_max(q);
}

/* Time left for sessions that a pause holds, or has held. */
static int64_t wait_queue_left_ns(const struct wait_queue *q)
{
    return atomic_load_explicit(&q->held_until_ns, memory_order_relaxed) + WAIT_QUEUE_RELEASE_NS -
           clock_now_ns();
}

void wait_queue_pause(struct wait_queue *q, unsigned max_held, int64_t until_ns)
{
    atomic_store_explicit(&q->max_held, max_held, memory_order_relaxed);
    atomic_store_explicit(&q->held_until_ns, until_ns, memory_order_relaxed);
    hold_close(&q->hold);
}

void wait_queue_resume(struct wait_queue *q, int64_t now_ns)
{
    if (now_ns < atomic_load_explicit(&q->held_until_ns, memory_order_relaxed))
        atomic_store_explicit(&q->held_until_ns, now_ns, memory_order_relaxed);
    hold_open(&q->hold);
}

void wait_queue_init(struct wait_queue *q, unsigned max, int64_t timeout_ns)
{
    q->balancer = NULL;
    wait_queue_set(q, max, timeout_ns);
    hold_open(&q->hold);
    atomic_init(&q->n, 0);
    atomic_init(&q->tickets_in_use, 0);
    lock_init(&q->lock);
    list_init(&q->tickets);
}

void wait_queue_use(struct wait_queue *q, struct balancer *balancer)
{
    lock_take(&q->lock);
    q->balancer = balancer;
    lock_release(&q->lock);
}

void wait_queue_close(struct wait_queue *q)
{
    MUST(list_empty(&q->tickets));
    lock_close(&q->lock);
}

/* Called under the lock. */
static void wait_queue_remove(struct wait_queue *q, struct wait_ticket *t)
{
    list_remove(&t->link);
    t->is_queued = false;
    atomic_fetch_sub_explicit(&q->n, 1, memory_order_relaxed);
}

/* Dequeue ${t}; false if its result is already under way. */
static bool wait_queue_take_back(struct wait_ticket *t)
{
    struct wait_queue *q = t->queue;
    bool was_queued;

    lock_take(&q->lock);
    was_queued = t->is_queued;
    if (was_queued)
        wait_queue_remove(q, t);
    lock_release(&q->lock);
    return was_queued;
}

/* Free ${t}. This is the last access to ${q}, which may then be freed. */
static void wait_queue_free_ticket(struct wait_queue *q, struct wait_ticket *t)
{
    free(t);
    atomic_fetch_sub_explicit(&q->tickets_in_use, 1, memory_order_release);
}

static void wait_queue_free(struct wait_ticket *t)
{
    loop_cancel(t->loop, &t->timeout);
    wait_queue_free_ticket(t->queue, t);
}

static void wait_queue_pass_on(struct wait_ticket *t)
{
    struct wait_queue *q = t->queue;

    if (t->endpoint)
        endpoint_leave(t->endpoint);
    wait_queue_serve(q);
    wait_queue_free_ticket(q, t);
}

static void wait_queue_run_given(struct task *task)
{
    struct wait_ticket *t = CONTAINER_OF(task, struct wait_ticket, given);
    wait_queue_done *done = t->done;
    struct endpoint *e = t->endpoint;
    void *cookie = t->cookie;
    int error = t->error;

    if (t->is_left) {
        wait_queue_pass_on(t);
        return;
    }
    wait_queue_free(t);
    done(cookie, e, error);
}

/* The loop ends, and its sessions have left the queue: pass the place on. */
static void wait_queue_drop_given(struct task *task)
{
    wait_queue_pass_on(CONTAINER_OF(task, struct wait_ticket, given));
}

static const struct task_type wait_queue_given_type = {
    .name = "place at a server", .run = wait_queue_run_given, .drop = wait_queue_drop_given};

static void wait_queue_schedule(struct wait_ticket *t, int64_t left_ns)
{
    bool looks = t->is_held && left_ns > WAIT_QUEUE_LOOK_NS;

    t->from_ns = clock_now_ns();
    t->limit_ns = looks ? WAIT_QUEUE_LOOK_NS : left_ns;
    loop_schedule(t->loop, &t->timeout, t->limit_ns);
}

/* A pause that has begun or was prolonged since ${t} joined holds ${t} too. */
static bool wait_queue_holds_on(struct wait_ticket *t)
{
    int64_t left_ns;

    t->is_held |= hold_is_closed(&t->queue->hold);
    left_ns = t->is_held ? wait_queue_left_ns(t->queue) : 0;
    if (left_ns > 0)
        wait_queue_schedule(t, left_ns);
    return left_ns > 0;
}

/* While the process did not run, no loop freed a slot. */
static bool wait_queue_was_away(struct wait_ticket *t)
{
    int64_t due_at_ns = loop_due_ns(t->loop, t->from_ns, t->limit_ns);

    if (due_at_ns <= loop_heard_ns(t->loop))
        return false;
    loop_schedule(t->loop, &t->timeout, due_at_ns - clock_now_ns());
    return true;
}

static void wait_queue_run_timeout(struct task *task)
{
    struct wait_ticket *t = TIMER_OWNER(task, struct wait_ticket, timeout);
    wait_queue_done *done = t->done;
    void *cookie = t->cookie;

    if (wait_queue_holds_on(t) || wait_queue_was_away(t))
        return;
    if (!wait_queue_take_back(t))
        return; /* too late: the result is under way */
    wait_queue_free_ticket(t->queue, t);
    done(cookie, NULL, -ETIMEDOUT);
}

/* No drop(): its sessions leave the queue. */
static const struct task_type wait_queue_timeout_type = {.name = "wait for a server",
                                                         .run = wait_queue_run_timeout};

static bool wait_queue_append(struct wait_queue *q, struct wait_ticket *t)
{
    bool has_space;

    lock_take(&q->lock);
    has_space = wait_queue_has_space(q);
    if (has_space) {
        list_append(&q->tickets, &t->link);
        t->is_queued = true;
        atomic_fetch_add_explicit(&q->tickets_in_use, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&q->n, 1, memory_order_relaxed);
    }
    lock_release(&q->lock);
    return has_space;
}

int wait_queue_join(struct wait_queue *q, struct wait_ticket **out,
                    struct balancer_pick_state *pick, wait_queue_done *done, void *cookie)
{
    struct wait_ticket *t;

    if (!wait_queue_has_space(q))
        return -ENOBUFS;
    t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->given.type = &wait_queue_given_type;
    list_init(&t->link);
    t->queue = q;
    t->loop = loop_current();
    t->pick = pick;
    timer_init_silence(&t->timeout, &wait_queue_timeout_type);
    t->done = done;
    t->cookie = cookie;
    t->is_held = hold_is_closed(&q->hold);
    if (!wait_queue_append(q, t)) {
        free(t);
        return -ENOBUFS;
    }
    *out = t;
    wait_queue_schedule(t, t->is_held ? wait_queue_left_ns(q)
                                      : atomic_load_explicit(&q->timeout_ns, memory_order_relaxed));
    wait_queue_serve(q); /* see note: freed or joined */
    return 0;
}

void wait_queue_leave(struct wait_ticket *t)
{
    MUST(loop_is_current(t->loop));
    loop_cancel(t->loop, &t->timeout);
    if (wait_queue_take_back(t))
        wait_queue_free_ticket(t->queue, t);
    else
        t->is_left = true;
}

static bool wait_queue_goes_on(const struct wait_ticket *t)
{
    return t->error == -EBUSY || (t->error == -ENOENT && t->pick->n_tried == 0);
}

/* Dequeue the first waiter that gets a slot or an error; NULL: all wait on. */
static struct wait_ticket *wait_queue_first_served(struct wait_queue *q)
{
    struct wait_ticket *served = NULL;

    lock_take(&q->lock);
    list_for_each (link, &q->tickets) {
        struct wait_ticket *t = LIST_ENTRY(link, struct wait_ticket, link);

        if (!hold_pass(&q->hold))
            break;
        t->error = balancer_pick(q->balancer, t->pick, &t->endpoint);
        if (!wait_queue_goes_on(t)) {
            wait_queue_remove(q, t);
            served = t;
            break;
        }
        hold_give_back(&q->hold);
        if (t->pick->n_tried == 0)
            break; /* an untried session got no slot: no later one does */
    }
    lock_release(&q->lock);
    return served;
}

void wait_queue_serve(struct wait_queue *q)
{
    struct wait_ticket *t;

    atomic_thread_fence(memory_order_seq_cst); /* see note: freed or joined */
    while (wait_queue_length(q) > 0 && (t = wait_queue_first_served(q))) {
        if (t->error < 0)
            t->endpoint = NULL;
        if (loop_submit(t->loop, LOOP_CONTROL, &t->given) == 0)
            continue;
        /* The waiter's loop has ended. */
        if (t->endpoint)
            endpoint_leave(t->endpoint);
        wait_queue_free_ticket(q, t);
        atomic_thread_fence(memory_order_seq_cst);
    }
}
