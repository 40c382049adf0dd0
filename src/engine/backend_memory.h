/*
 * engine/backend_memory: memory for libev, which aborts the process when an allocation fails.
 *
 * note: reserve. libev keeps arrays that it grows when a watcher starts, and when events arrive;
 * their length depends on the highest watched descriptor only. So before a descriptor is watched,
 * all arrays get blocks in which they can grow without an allocation:
 *
 *   block | used by libev  | reserve       |   0 < size <= capacity
 *   next  | larger block, or NULL          |   libev's next request beyond `capacity` moves there
 *
 * If the reservation fails, the descriptor is refused, and what is watched stays watched. libev
 * never asks for more than 2 * length + 1 page (ev.c 4.33, array_nextsize()).
 *
 * libev's allocator gets no argument that names the loop. So each thread sets its memory; blocks
 * have a header that names theirs.
 */
#ifndef ENGINE_BACKEND_MEMORY_H
#define ENGINE_BACKEND_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/must.h"

/*
 * Blocks that libev uses at a time: struct ev_loop, epoll_events, anfds, fdchanges, timers, rfeeds,
 * epoll_eperms, and pendings of two priorities (engine/ready.h); one more than that.
 */
#define BACKEND_MEMORY_SLOTS 10

struct backend_block;

struct backend_slot {
    struct backend_block *block;
    struct backend_block *next; /* NULL: none */
};

struct backend_memory {
    atomic_int n_fds; /* descriptors below this can be watched; relaxed: it only grows */
    struct backend_slot slots[BACKEND_MEMORY_SLOTS];
};

/*
 * backend_memory_open(m):
 * Reserve memory for a new ev_loop and its first descriptors, and make libev use this allocator.
 *
 * Errors: 0; -ENOMEM
 */
int backend_memory_open(struct backend_memory *m) NODISCARD;

/*
 * backend_memory_close(m):
 * Free all blocks, after libev has freed its arrays.
 *
 * Thread: any, when libev does not use ${m} any more
 */
void backend_memory_close(struct backend_memory *m);

/*
 * backend_memory_use(m):
 * Let libev use ${m} (NULL: malloc) for what this thread does. Returns what it used before.
 *
 * Thread: any, if no other thread uses ${m}
 */
struct backend_memory *backend_memory_use(struct backend_memory *m);

/*
 * backend_memory_reserve(m, fd):
 * See note: reserve.
 *
 * Thread: the one that uses ${m}
 * Errors: 0; -ENOMEM (nothing has changed)
 */
int backend_memory_reserve(struct backend_memory *m, int fd) NODISCARD;

#endif
