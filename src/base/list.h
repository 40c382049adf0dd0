/*
 * base/list: a circular doubly linked list whose nodes live inside the objects they link.
 *
 * A list head and an unlinked node both point at themselves, so that removing twice is harmless and
 * "is it on a list" is a question a node can answer.
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

/*
 * list_init(l):
 * Make ${l} an empty list, or a node that is on no list.
 *
 * Thread: owner of ${l}
 */
static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

/*
 * list_empty(l):
 * Is the list empty, or the node on no list?
 *
 * Thread: owner of ${l}
 */
static inline bool list_empty(const struct list *l)
{
    return l->next == l;
}

/*
 * list_append(l, node):
 * Put ${node}, which is on no list, at the end of ${l}.
 *
 * Thread: owner of ${l}
 * Owns:   nothing; the object of ${node} must outlive its place on the list
 */
static inline void list_append(struct list *l, struct list *node)
{
    node->prev = l->prev;
    node->next = l;
    l->prev->next = node;
    l->prev = node;
}

/*
 * list_remove(node):
 * Take ${node} off its list; nothing happens if it is on none.
 *
 * Thread: owner of the list
 */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)
#define LIST_FIRST(l, type, member)    LIST_ENTRY((l)->next, type, member)

/* Walk ${l}; ${node} must not be removed in the body. */
#define list_for_each(node, l) for (struct list *node = (l)->next; node != (l); node = node->next)

/* Walk ${l}; the body may remove ${node}, and nothing else. */
#define list_for_each_safe(node, l)                                             \
    for (struct list *node = (l)->next, *node##_next = node->next; node != (l); \
         node = node##_next, node##_next = node->next)

#endif
