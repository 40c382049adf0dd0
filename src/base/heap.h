/*
 * base/heap: binary heap of pointers; the first item, in the order of before(), is on top. The
 * heap's owner provides the memory.
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct heap {
    void **items; /* array of the owner, large enough for all items */
    size_t n;
    bool (*before)(const void *a, const void *b); /* does ${a} come before ${b}? */
    void (*moved)(void *item, size_t at);         /* ${item} is items[at] now; NULL: not wanted */
};

/* heap_add(h, item): add ${item}; ${h}->items must have space. Thread: owner */
void heap_add(struct heap *h, void *item);

/*
 * heap_first(h) / heap_take(h):
 * Return the first item / return and remove it; NULL: empty.
 *
 * Thread: owner
 */
void *heap_first(const struct heap *h);
void *heap_take(struct heap *h);

/* heap_remove(h, at): remove items[at]. Thread: owner */
void heap_remove(struct heap *h, size_t at);

#endif
