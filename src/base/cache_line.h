/*
 * base/cache_line: cache line size, for alignment against false sharing.
 */
#ifndef BASE_CACHE_LINE_H
#define BASE_CACHE_LINE_H

/* Correct for x86-64 and most ARM cores. */
#define CACHE_LINE_BYTES 64

#endif
