/*
 * server/threads: the boss loops, the worker loops, the control loop and the executor: how many
 * there are, on which processors they run, who looks after them, and in what order they end.
 */
#ifndef SERVER_THREADS_H
#define SERVER_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct executor;
struct loop;
struct loop_group;
struct server_conf;
struct watchdog;

struct threads {
    struct loop_group *boss;
    struct loop_group *workers;
    struct loop_group *control; /* one loop, for what is done once for all workers */
    struct executor *executor;
    struct watchdog *watchdog;
};

/*
 * threads_create(t, conf):
 * Build all loops and the executor, or none of it; no thread runs yet. What fails is logged.
 *
 * Thread: main
 * Owns:   the caller owns ${t}; nothing of ${conf}
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE; -EINVAL (a processor that this process may not use)
 */
int threads_create(struct threads *t, const struct server_conf *conf) NODISCARD;

/*
 * threads_end_boss(t) / threads_end_workers(t) / threads_end_control(t) / threads_end_executor(t):
 * Stop these threads and wait until they have ended, some seconds at most. One that hangs is logged
 * with what it is in.
 *
 * Thread: main
 * Errors: 0; -ETIMEDOUT
 */
int threads_end_boss(struct threads *t) NODISCARD;
int threads_end_workers(struct threads *t) NODISCARD;
int threads_end_control(struct threads *t) NODISCARD;
int threads_end_executor(struct threads *t) NODISCARD;

/*
 * threads_control(t):
 * The control loop.
 *
 * Thread: any
 */
struct loop *threads_control(const struct threads *t);

/*
 * threads_watch(t) / threads_watch_interval_ns(t):
 * Look after the loops: true when all turn. To be called so often.
 *
 * Thread: main
 * Units:  ns
 */
bool threads_watch(struct threads *t);
int64_t threads_watch_interval_ns(const struct threads *t);

/*
 * threads_log_stats(t):
 * Write what they counted to the log.
 *
 * Thread: main
 */
void threads_log_stats(struct threads *t);

/*
 * threads_destroy(t):
 * Free what was created; all have ended or were never started.
 *
 * Thread: main
 */
void threads_destroy(struct threads *t);

#endif
