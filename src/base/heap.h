/*
 * base/heap: binary heap of pointers; the first item, in the order of before(), is on top. The
 * heap's owner provides the memory.
 *
 * To sort items, add all, then take all; the sort may pause after each call.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct heap {
    void **items; /* has room for all items that are added */
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
 * Return the first item / also remove it; NULL: none.
 *
 * Thread: owner
 */
void *heap_first(const struct heap *h);
void *heap_take(struct heap *h);

#endif
