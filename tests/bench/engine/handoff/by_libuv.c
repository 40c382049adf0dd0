/*
 * by_libuv: what a program on libuv does, since libuv has no queue for this: a list under a lock,
 * taken whole in the callback of a uv_async. Only who finds the list empty calls uv_async_send().
 */
#include "engine/handoff/contender.h"

#include "common/die.h"

#include <stdbool.h>
#include <stdlib.h>
#include <uv.h>

struct contender {
    uv_mutex_t lock; /* of what follows up to `ending` */
    struct job *first;
    struct job **end; /* where the next one is linked in */
    bool ending;
    uv_loop_t loop;
    uv_async_t async;
    uv_thread_t thread;
};

static void check(int rc, const char *what)
{
    if (rc < 0)
        die("%s: %s", what, uv_strerror(rc));
}

static void on_async(uv_async_t *async)
{
    struct contender *c = async->data;
    struct job *batch;
    bool is_over;

    uv_mutex_lock(&c->lock);
    batch = c->first;
    c->first = NULL;
    c->end = &c->first;
    is_over = c->ending;
    uv_mutex_unlock(&c->lock);
    while (batch) {
        struct job *job = batch;

        batch = job->link.next; /* before it runs: it may hand itself on */
        job->run(job);
    }
    if (is_over)
        uv_close((uv_handle_t *)async, NULL);
}

static void loop_main(void *arg)
{
    struct contender *c = arg;

    uv_run(&c->loop, UV_RUN_DEFAULT);
}

struct contender *contender_start(void)
{
    struct contender *c = calloc(1, sizeof(*c));

    if (!c)
        die_errno("calloc");
    c->end = &c->first;
    check(uv_mutex_init(&c->lock), "uv_mutex_init");
    check(uv_loop_init(&c->loop), "uv_loop_init");
    check(uv_async_init(&c->loop, &c->async, on_async), "uv_async_init");
    c->async.data = c;
    check(uv_thread_create(&c->thread, loop_main, c), "uv_thread_create");
    return c;
}

void contender_submit(struct contender *c, struct job *job)
{
    bool was_empty;

    job->link.next = NULL;
    uv_mutex_lock(&c->lock);
    was_empty = !c->first;
    *c->end = job;
    c->end = &job->link.next;
    uv_mutex_unlock(&c->lock);
    if (was_empty)
        check(uv_async_send(&c->async), "uv_async_send");
}

void contender_stop(struct contender *c)
{
    uv_mutex_lock(&c->lock);
    c->ending = true;
    uv_mutex_unlock(&c->lock);
    check(uv_async_send(&c->async), "uv_async_send");
    check(uv_thread_join(&c->thread), "uv_thread_join");
    check(uv_loop_close(&c->loop), "uv_loop_close");
    uv_mutex_destroy(&c->lock);
    free(c);
}
