/*
 * server/threads: boss, worker and control loops, executors and handshake threads: number, CPUs,
 * watchdog, shutdown.
 */
#ifndef SERVER_THREADS_H
#define SERVER_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/loop_group.h"

struct executor;
struct server_conf;
struct server_workers_conf;
struct tls_handshakes;
struct watchdog;

struct threads {
    struct loop_group *boss;
    struct loop_group *workers;
    struct loop_group *control; /* one loop */
    struct loop *other;         /* the loop of threads_add(); NULL: none */
    struct executor *executor;
    struct executor *lookups; /* of host names: one without an answer delays no other slow work */
    struct tls_handshakes *handshakes;
    struct watchdog *watchdog;
};

/*
 * threads_create(t, conf):
 * Create all loops, the executors and the pool of handshake threads, or none. Failures are logged.
 *
 * Thread: main
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE; -EINVAL (a processor that this process may not use)
 */
int threads_create(struct threads *t, const struct server_conf *conf) NODISCARD;

/*
 * threads_worker_limits(conf, min, max) / threads_workers(conf, n):
 * Limits of the number of worker threads for ${conf}, equal if it is fixed / the number for ${conf}
 * when there were ${n}; 0: at start.
 */
void threads_worker_limits(const struct server_workers_conf *conf, unsigned *min, unsigned *max);
unsigned threads_workers(const struct server_workers_conf *conf, unsigned n);

struct threads_change {
    struct loop_group_change boss, workers;
};

/*
 * threads_prepare(t, boss, workers, change) / threads_commit(t, change) / threads_cancel(change):
 * Create the loops that new numbers need / use the new numbers / undo the prepare, for bosses and
 * workers, as loop_group_prepare(). After a commit the watchdog watches new loops.
 *
 * Thread: control loop
 * Units:  up to SERVER_BOSS_MAX and SERVER_WORKERS_MAX
 * Errors: as loop_group_prepare()
 */
int threads_prepare(struct threads *t, unsigned boss, unsigned workers,
                    struct threads_change *change) NODISCARD;
void threads_commit(struct threads *t, const struct threads_change *change);
void threads_cancel(const struct threads_change *change);

/*
 * threads_end_boss(t) / threads_end_workers(t) / threads_end_control(t) / threads_end_executors(t):
 * Stop and join these threads. A thread that does not end within seconds is logged.
 *
 * Thread: main
 * Errors: 0; -ETIMEDOUT
 */
int threads_end_boss(struct threads *t) NODISCARD;
int threads_end_workers(struct threads *t) NODISCARD;
int threads_end_control(struct threads *t) NODISCARD;
int threads_end_executors(struct threads *t) NODISCARD;

/* threads_control(t): return the control loop. */
struct loop *threads_control(const struct threads *t);

/*
 * threads_watch(t) / threads_watch_interval_ns(t) / threads_doze(t) / threads_watch_fd(t) /
 * threads_add(t, loop):
 * Do the work of server_watch(), server_watch_interval_ns(), server_doze(), server_watch_fd() and
 * server_add_loop().
 *
 * Thread: main
 */
bool threads_watch(struct threads *t);
int64_t threads_watch_interval_ns(const struct threads *t);
bool threads_doze(struct threads *t);
int threads_watch_fd(const struct threads *t);
void threads_add(struct threads *t, struct loop *loop);

/*
 * threads_loops(t, n):
 * List the ${n} loops: bosses, workers, control loop, and that of threads_add().
 *
 * Owns:   the caller frees the list; the loops live as long as ${t}
 * Errors: NULL (out of memory)
 */
struct loop **threads_loops(const struct threads *t, unsigned *n);

/*
 * threads_destroy(t):
 * Stop the handshake threads, and free all. Loops and executors must not run.
 *
 * Thread: main
 */
void threads_destroy(struct threads *t);

#endif
