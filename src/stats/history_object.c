/* stats/history_object: the objects of a history, and their memory. */
#include <stdlib.h>
#include <string.h>

#include "stats/history_internal.h"

void history_drop_level(struct history *h, struct history_object *o, unsigned level)
{
    struct history_object_level *l = &o->levels[level];

    for (unsigned i = 0; l->kept && i < HISTORY_FIGURES; i++) {
        if (l->kept->rings[i].values)
            h->bytes -= history_slots(level) * sizeof(float);
        free(l->kept->rings[i].values);
    }
    if (l->kept)
        h->bytes -= sizeof(*l->kept);
    free(l->kept);
    memset(l, 0, sizeof(*l));
    if (level == 0)
        o->has_was = false;
}

static size_t history_object_bytes(const struct history_object *o)
{
    return sizeof(*o) + strlen(o->name) + 1;
}

void history_drop(struct history *h, struct history_object *o)
{
    for (unsigned level = 0; level < HISTORY_LEVELS; level++)
        history_drop_level(h, o, level);
    if (h->at == o)
        h->at = NULL;
    if (o != h->whole)
        h->bytes -= history_object_bytes(o);
    list_remove(&o->link);
    free(o->name);
    free(o);
}

struct history_object *history_add(struct history *h, enum figure_subject subject, const char *name)
{
    bool fits = h->bytes + sizeof(struct history_object) + strlen(name) < h->max_bytes;
    struct history_object *o = fits ? calloc(1, sizeof(*o)) : NULL;

    if (o)
        o->name = strdup(name);
    if (!o || !o->name) {
        free(o);
        return NULL;
    }
    if (h->whole) /* it is the first, and no part of the limit */
        h->bytes += history_object_bytes(o);
    o->subject = subject;
    list_append(&h->objects, &o->link);
    return o;
}

static bool history_is(const struct history_object *o, enum figure_subject subject,
                       const char *name)
{
    return o->subject == subject && strcmp(o->name, name) == 0;
}

/* Objects come in the same order each round: look behind the last one first. */
struct history_object *history_find(const struct history *h, enum figure_subject subject,
                                    const char *name)
{
    struct list *from = h->at ? &h->at->link : (struct list *)&h->objects, *l = from;

    do {
        struct history_object *o = CONTAINER_OF(l, struct history_object, link);

        if (l != &h->objects && history_is(o, subject, name))
            return o;
        l = l->next;
    } while (l != from);
    return NULL;
}

bool history_counts_are_0(const struct history_counts *counts)
{
    static const struct history_counts none;

    return memcmp(counts, &none, sizeof(none)) == 0;
}

bool history_need_kept(struct history *h, struct history_object_level *level)
{
    if (!level->kept && h->bytes + sizeof(*level->kept) <= h->max_bytes) {
        level->kept = calloc(1, sizeof(*level->kept));
        h->bytes += level->kept ? sizeof(*level->kept) : 0;
    }
    h->lacks |= !level->kept;
    return level->kept;
}

bool history_need_ring(struct history *h, struct history_ring *ring, unsigned level)
{
    size_t bytes = history_slots(level) * sizeof(float);

    if (h->bytes + bytes <= h->max_bytes)
        ring->values = calloc(history_slots(level), sizeof(float));
    if (!ring->values) {
        h->lacks = true;
        ring->since = UINT64_MAX;
        return false;
    }
    if (ring->since > 0)
        ring->since = h->levels[level].tick;
    h->bytes += bytes;
    return true;
}
