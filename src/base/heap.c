#include "base/heap.h"

static void heap_put(struct heap *h, size_t at, void *item)
{
    h->items[at] = item;
    if (h->moved)
        h->moved(item, at);
}

static size_t heap_rise(struct heap *h, size_t at, const void *item)
{
    for (size_t parent; at > 0; at = parent) {
        parent = (at - 1) / 2;
        if (!h->before(item, h->items[parent]))
            break;
        heap_put(h, at, h->items[parent]);
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
        heap_put(h, at, h->items[child]);
    }
    return at;
}

void heap_add(struct heap *h, void *item)
{
    size_t at = h->n++;

    heap_put(h, heap_rise(h, at, item), item);
}

void *heap_first(const struct heap *h)
{
    return h->n > 0 ? h->items[0] : NULL;
}

void heap_remove(struct heap *h, size_t at)
{
    void *last = h->items[--h->n];

    if (at < h->n)
        heap_put(h, heap_sink(h, heap_rise(h, at, last), last), last);
}

void *heap_take(struct heap *h)
{
    void *first = heap_first(h);

    if (first)
        heap_remove(h, 0);
    return first;
}
