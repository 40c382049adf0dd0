/*
 * base/list: intrusive circular doubly linked list.
 *
 * An empty head and an unlinked node point at themselves, so removing twice is harmless.
 *
 *   head <-> node <-> node <-> head      next->prev == prev->next == self
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>

#include "base/must.h"

struct list {
    struct list *next;
    struct list *prev;
};

/* list_init(l): make ${l} an empty list or an unlinked node. Thread: owner */
static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

/* list_empty(l): is the list empty, or the node unlinked? Thread: owner */
static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

/*
 * list_append(l, node):
 * Append the unlinked ${node}, which must stay alive while linked.
 *
 * Thread: owner
 */
static inline void list_append(struct list *l, struct list *node)
{
    node->prev = l->prev;
    node->next = l;
    l->prev->next = node;
    l->prev = node;
}

/* list_append_all(l, from): move all nodes of ${from} to the end of ${l}. Thread: owner of both */
static inline void list_append_all(struct list *l, struct list *from)
{
    if (list_empty(from))
        return;
    from->next->prev = l->prev;
    from->prev->next = l;
    l->prev->next = from->next;
    l->prev = from->prev;
    list_init(from);
}

/* list_remove(node): unlink ${node}; no effect if it is unlinked. Thread: owner of the list */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)
#define LIST_FIRST(l, type, member)    LIST_ENTRY((l)->next, type, member)

/* Iterate; the body must not remove ${node}. */
#define list_for_each(node, l) for (struct list *node = (l)->next; node != (l); node = node->next)

/* Iterate; the body may remove ${node}, but no other node. */
#define list_for_each_safe(node, l)                                             \
    for (struct list *node = (l)->next, *node##_next = node->next; node != (l); \
         node = node##_next, node##_next = node->next)

#endif
