#include "support/noted.h"

#include <check.h>
#include <semaphore.h>

#include "engine/promise.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/tasks.h"

struct noted noted;

void noted_setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    noted.loop = noted.promise_loop = loop_runner_create();
    noted.trace = (struct tasks_trace){.len = 0};
    promise_init(&noted.promise, noted.loop);
}

void noted_teardown(void)
{
    promise_close(&noted.promise);
    loop_runner_destroy(noted.loop);
}

static void nothing(void *arg)
{
    (void)arg;
}

void noted_go_to(enum place place)
{
    if (place == WITHOUT_LOOP)
        noted.promise_loop = NULL;
    if (place == LOOP_ENDED)
        loop_runner_call(noted.loop, nothing, NULL);
    if (place >= LOOP_ENDED)
        loop_runner_stop(noted.loop);
    promise_close(&noted.promise);
    promise_init(&noted.promise, noted.promise_loop);
}

void noted_succeed(void *arg)
{
    ck_assert(promise_succeed(arg));
}

void noted_succeed_in(enum place place, struct promise *p)
{
    if (place == ON_ITS_LOOP)
        loop_runner_call(noted.loop, noted_succeed, p);
    else
        noted_succeed(p);
}

void noted_settle(enum place place)
{
    if (place <= FROM_OUTSIDE)
        loop_runner_call(noted.loop, nothing, NULL);
}

void noted_note(struct promise_listener *l, struct promise *p)
{
    struct noting *n = CONTAINER_OF(l, struct noting, listener);

    tasks_trace_add(&noted.trace, n->letter);
    if (n->adds) {
        promise_listen(p, &n->adds->listener);
        tasks_trace_add(&noted.trace, (char)(n->letter - 'a' + 'A'));
    }
}

void noted_noting_init(struct noting *n, char letter)
{
    *n = (struct noting){.listener.done = noted_note, .letter = letter};
}

void noted_noting_reset(void)
{
    noted.trace = (struct tasks_trace){.len = 0};
    noted_noting_init(&noted.a, 'a');
    noted_noting_init(&noted.b, 'b');
    noted_noting_init(&noted.c, 'c');
    noted_noting_init(&noted.d, 'd');
}
