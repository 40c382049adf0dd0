/*
 * engine/loop_internal: what loop.c (submitting, life) and turn.c (the turn) know of a loop. Private to them.
 */
#ifndef ENGINE_LOOP_INTERNAL_H
#define ENGINE_LOOP_INTERNAL_H

#include <ev.h>
#include <pthread.h>
#include <stdatomic.h>

#include "engine/gate.h"
#include "engine/loop.h"
#include "engine/queue.h"
#include "engine/task_list.h"
#include "engine/wakeup.h"

#define LOOP_LANES      3
#define LOOP_NAME_BYTES 16 /* what the kernel keeps of a thread's name */

/* Written by the loop only, read by any thread: relaxed, since each is a number on its own. */
struct loop_counters {
    _Atomic uint64_t turns;
    _Atomic uint64_t polls_blocking;
    _Atomic uint64_t tasks_run;
    _Atomic uint64_t tasks_dropped; /* also by the thread that stops a loop without one */
    _Atomic int64_t io_ns;
    _Atomic int64_t task_ns;
};

struct loop {
    /* The loop's own. */
    struct ev_loop *ev;
    int64_t now_ns;
    int64_t io_ns;         /* of this turn */
    struct list due;       /* of struct timed, in order */
    struct task_list reap; /* of this turn */
    uint64_t tasks_taken;  /* from the task lane, ever */
    struct schedule schedule;
    struct ev_io wakeup_io;
    struct ev_timer timer;
    int64_t timer_at_ns; /* what `timer` is armed for; CLOCK_NEVER: not armed */
    struct budget_conf budget;
    struct task_list at_stop;
    int64_t stop_began_at_ns; /* 0: not yet */
    int64_t last_task_at_ns;
    struct loop_counters counters;

    /* Shared. */
    struct wakeup wakeup;
    struct gate gates[LOOP_LANES];
    struct queue lanes[LOOP_LANES];
    unsigned max_pending_tasks;
    _Atomic int state;
    atomic_uint load;
    /*
     * note: start. Starting and stopping a loop without a thread exclude each other by this lock, the only one there
     * is: a loop is STARTED only when its thread exists, so a failed start has nothing to undo. Nobody waits for it
     * once the loop runs.
     */
    pthread_mutex_t start_lock;
    pthread_t thread;
    bool joinable;
    _Atomic int64_t stop_quiet_ns;
    _Atomic int64_t stop_timeout_ns;
    void *cookie;
    char name[LOOP_NAME_BYTES];
};

/*
 * turn_init(loop) / turn_run(loop):
 * Start the loop's own watchers; run one turn and say whether there is to be another.
 *
 * Thread: before start; loop
 * Errors: none
 */
void turn_init(struct loop *loop);
bool turn_run(struct loop *loop);

/*
 * loop_refuse_and_drop(loop):
 * Close the gates and drop every task that came in before.
 *
 * Thread: loop, or the thread that ends a loop without one
 * Errors: none
 */
void loop_refuse_and_drop(struct loop *loop);

#endif
