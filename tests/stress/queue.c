/*
 * stress/queue: eight producers, a million tasks each; none lost, none doubled, each producer's in
 * its order.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>

#include "engine/queue.h"
#include "stress/stress.h"

#define PRODUCERS 8

struct numbered {
    struct task task;
    uint32_t producer;
    uint32_t number;
};

struct producer {
    pthread_t thread;
    struct numbered *tasks;
};

static struct queue q;
static uint32_t n_each;

static void *produce(void *arg)
{
    struct producer *p = arg;

    for (uint32_t i = 0; i < n_each; i++)
        queue_push(&q, &p->tasks[i].task);
    return NULL;
}

static void producer_start(struct producer *p, uint32_t id)
{
    p->tasks = calloc(n_each, sizeof(*p->tasks));
    STRESS_CHECK(p->tasks != NULL);
    for (uint32_t i = 0; i < n_each; i++) {
        p->tasks[i].producer = id;
        p->tasks[i].number = i;
    }
    STRESS_CHECK(pthread_create(&p->thread, NULL, produce, p) == 0);
}

static void consume(void)
{
    uint64_t left = (uint64_t)n_each * PRODUCERS;
    uint32_t next[PRODUCERS] = {0};

    while (left > 0) {
        struct numbered *n;
        struct task *t;

        queue_take(&q);
        t = queue_pop(&q);
        if (!t) {
            sched_yield();
            continue;
        }
        n = CONTAINER_OF(t, struct numbered, task);
        STRESS_CHECK(n->number == next[n->producer]);
        next[n->producer]++;
        left--;
    }
}

int main(int argc, char **argv)
{
    struct producer producers[PRODUCERS];
    int64_t began_at_ns;

    n_each = (uint32_t)stress_load(argc, argv, 1000000);
    queue_init(&q);
    began_at_ns = clock_now_ns();
    for (uint32_t i = 0; i < PRODUCERS; i++)
        producer_start(&producers[i], i);
    consume();
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        free(producers[i].tasks);
    }
    STRESS_CHECK(queue_empty(&q));
    printf("queue: %d producers, %" PRIu32 " tasks each in order, %.1f s\n", PRODUCERS, n_each,
           (double)(clock_now_ns() - began_at_ns) / (double)NS_PER_S);
    return EXIT_SUCCESS;
}
