/*
 * base/heap: binary heap of pointers, the first in an order on top. Its owner has the memory.
 *
 * Sorting by adding all and taking all may pause after any of them.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct heap {
    void **items; /* room for all that are added */
    size_t n;
    bool (*before)(const void *a, const void *b); /* does ${a} come before ${b}? */
};

/*
 * heap_add(h, item):
 * Add ${item}; there must be room.
 *
 * Thread: owner
 */
void heap_add(struct heap *h, void *item);

/*
 * heap_first(h) / heap_take(h):
 * The first item, which stays / is removed; NULL: none.
 *
 * Thread: owner
 */
void *heap_first(const struct heap *h);
void *heap_take(struct heap *h);

#endif
