/*
 * base/cache_line: the unit in which processors share memory.
 */
#ifndef BASE_CACHE_LINE_H
#define BASE_CACHE_LINE_H

/* x86-64 and most ARM cores. Where lines are longer this costs speed, not correctness. */
#define CACHE_LINE_BYTES 64

#endif
