/* engine/queue: FIFO, nothing lost between producers, and what is taken when. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/must.h"
#include "engine/queue.h"
#include "support/sanitized.h"
#include "support/suite.h"

#define PRODUCERS  8
#define TASKS_EACH IF_SANITIZED(20000, 200000)

static struct queue q;
static struct task one, two, three;

static void setup(void)
{
    queue_init(&q);
}

static struct task *next_task(void)
{
    queue_take(&q);
    return queue_pop(&q);
}

GROUP(queue, setup, NULL);

TEST(queue, a_new_queue_is_empty)
{
    ck_assert(queue_empty(&q));
    ck_assert_ptr_null(next_task());
    ck_assert_ptr_null(next_task());
}

TEST(queue, tasks_are_popped_in_the_order_they_were_pushed)
{
    queue_push(&q, &one);
    queue_push(&q, &two);
    ck_assert_ptr_eq(next_task(), &one);
    queue_push(&q, &three);
    ck_assert_ptr_eq(next_task(), &two);
    ck_assert_ptr_eq(next_task(), &three);
    ck_assert_ptr_null(next_task());
}

TEST(queue, a_queue_is_empty_exactly_when_every_task_was_popped)
{
    for (int i = 0; i < 3; i++) {
        queue_push(&q, &one);
        ck_assert(!queue_empty(&q));
        queue_push(&q, &two);
        ck_assert_ptr_eq(next_task(), &one);
        ck_assert(!queue_empty(&q));
        ck_assert_ptr_eq(next_task(), &two);
        ck_assert(queue_empty(&q));
    }
}

TEST(queue, a_popped_task_can_be_pushed_again_at_once)
{
    queue_push(&q, &one);
    for (int i = 0; i < 1000; i++) {
        ck_assert_ptr_eq(next_task(), &one);
        queue_push(&q, &one);
    }
    ck_assert_ptr_eq(next_task(), &one);
    ck_assert(queue_empty(&q));
}

TEST(queue, task_pushed_after_a_take_waits_for_the_next_take)
{
    queue_push(&q, &one);
    queue_take(&q);
    queue_push(&q, &two);
    queue_take(&q); /* nothing: there is still one from before */
    ck_assert_ptr_eq(queue_pop(&q), &one);
    ck_assert_ptr_null(queue_pop(&q));
    ck_assert(!queue_empty(&q));
    ck_assert_ptr_eq(next_task(), &two);
    ck_assert(queue_empty(&q));
}

TEST(queue, peeking_shows_the_next_task_and_takes_none)
{
    ck_assert_ptr_null(queue_peek(&q));
    queue_push(&q, &one);
    queue_push(&q, &two);
    ck_assert_ptr_null(queue_peek(&q));
    queue_take(&q);
    ck_assert_ptr_eq(queue_peek(&q), &one);
    ck_assert_ptr_eq(queue_peek(&q), &one);
    ck_assert_ptr_eq(next_task(), &one);
    ck_assert_ptr_eq(queue_peek(&q), &two);
    ck_assert_ptr_eq(next_task(), &two);
    ck_assert_ptr_null(queue_peek(&q));
    ck_assert(queue_empty(&q));
}

struct numbered {
    struct task task;
    unsigned producer;
    unsigned number;
};

static void *produce(void *arg)
{
    struct numbered *tasks = arg;

    for (unsigned i = 0; i < TASKS_EACH; i++)
        queue_push(&q, &tasks[i].task);
    return NULL;
}

/* How many came out of their order. */
static unsigned consume_all(void)
{
    unsigned next[PRODUCERS] = {0}, taken = 0, misplaced = 0;

    while (taken < PRODUCERS * TASKS_EACH) {
        struct task *t = next_task();
        struct numbered *n = CONTAINER_OF(t, struct numbered, task);

        if (!t) {
            sched_yield();
            continue;
        }
        misplaced += n->number != next[n->producer]++;
        taken++;
    }
    return misplaced;
}

TEST(queue, eight_producers_lose_nothing_and_each_keeps_its_order)
{
    struct numbered *tasks = calloc(PRODUCERS * TASKS_EACH, sizeof(*tasks));
    pthread_t threads[PRODUCERS];

    for (unsigned i = 0; i < PRODUCERS * TASKS_EACH; i++) {
        tasks[i].producer = i / TASKS_EACH;
        tasks[i].number = i % TASKS_EACH;
    }
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, tasks + (size_t)i * TASKS_EACH);
    ck_assert_uint_eq(consume_all(), 0);
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert(queue_empty(&q));
    ck_assert_ptr_null(next_task());
    free(tasks);
}
