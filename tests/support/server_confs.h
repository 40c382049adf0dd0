/*
 * support/server_confs: initializers for a small struct server_conf.
 */
#ifndef SUPPORT_SERVER_CONFS_H
#define SUPPORT_SERVER_CONFS_H

#include "base/clock.h"

/* `.boss` and `.worker`, with so many worker loops. */
#define SMALL_LOOPS(workers)                                                                 \
    .boss = {.threads = 1, .accept_batch = 16}, .worker = {.threads = {.n = (workers)},      \
                                                           .io_ratio = 50,                   \
                                                           .task_quantum_ns = 5 * NS_PER_MS, \
                                                           .max_pending_tasks = 65536}

/* `.executor`, with so many threads for tasks and for lookups. */
#define SMALL_EXECUTORS(n) \
    .executor = {.threads = (n), .lookup_threads = (n), .max_pending_tasks = 16}

#endif
