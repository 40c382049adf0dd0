/*
 * server/memory: how much memory the process has in use, as its allocator counts it.
 *
 * Not the size of the process (RSS): that does not shrink when memory is given back, for what is
 * free lies between what is not. Nor the kernel's memory, which sockets take.
 */
#ifndef SERVER_MEMORY_H
#define SERVER_MEMORY_H

#include <stdint.h>

/*
 * memory_in_use():
 * All that was allocated and not freed. It takes each arena's lock in turn and walks through what
 * is free there: 1 ms with 10,000 connections, whose blocks leave gaps between them, as measured
 * with 16 workers. Not for the way of a byte.
 *
 * Thread: any
 * Units:  bytes
 * Source: mallinfo(3): uordblks and hblkhd
 */
int64_t memory_in_use(void);

/*
 * memory_log_stats():
 * Write what the allocator has, in use and free, to the log.
 *
 * Thread: any
 */
void memory_log_stats(void);

#endif
