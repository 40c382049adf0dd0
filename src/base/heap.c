#include "base/heap.h"

static size_t heap_rise(struct heap *h, size_t at, const void *item)
{
    for (size_t parent; at > 0; at = parent) {
        parent = (at - 1) / 2;
        if (!h->before(item, h->items[parent]))
            break;
        h->items[at] = h->items[parent];
    }
    return at;
}

static size_t heap_sink(struct heap *h, size_t at, const void *item)
{
    for (size_t child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && h->before(h->items[child + 1], h->items[child]))
            child++;
        if (!h->before(h->items[child], item))
            break;
        h->items[at] = h->items[child];
    }
    return at;
}

void heap_add(struct heap *h, void *item)
{
    h->items[heap_rise(h, h->n++, item)] = item;
}

void *heap_first(const struct heap *h)
{
    return h->n > 0 ? h->items[0] : NULL;
}

void *heap_take(struct heap *h)
{
    void *first = heap_first(h), *last;

    if (!first)
        return NULL;
    last = h->items[--h->n];
    if (h->n > 0)
        h->items[heap_sink(h, 0, last)] = last;
    return first;
}
