#include "base/ref.h"
#include "base/arena.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct arena_piece {
    struct arena_piece *next;
    max_align_t bytes[];
};

struct arena {
    struct ref references;
    struct arena_piece *pieces;
    struct arena_owned *owned; /* newest first */
};

/* Object of arena_own(); itself a piece. */
struct arena_owned {
    struct arena_owned *next;
    void *object;
    void (*release)(void *object);
};

int arena_create(struct arena **out)
{
    struct arena *a = calloc(1, sizeof(*a));

    if (!a)
        return -ENOMEM;
    ref_init(&a->references);
    *out = a;
    return 0;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
    struct arena_piece *piece;
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(*piece), &bytes))
        return NULL;
    piece = calloc(1, bytes);
    if (!piece)
        return NULL;
    piece->next = a->pieces;
    a->pieces = piece;
    return piece->bytes;
}

char *arena_text(struct arena *a, const char *text, size_t len)
{
    char *copy = len < SIZE_MAX ? arena_alloc(a, len + 1, 1) : NULL;

    if (copy)
        memcpy(copy, text, len);
    return copy;
}

int arena_own(struct arena *a, void *object, void (*release)(void *object))
{
    struct arena_owned *owned = arena_alloc(a, 1, sizeof(*owned));

    if (!owned)
        return -ENOMEM;
    *owned = (struct arena_owned){.next = a->owned, .object = object, .release = release};
    a->owned = owned;
    return 0;
}

struct arena *arena_hold(struct arena *a)
{
    if (a)
        ref_hold(&a->references);
    return a;
}

void arena_release(struct arena *a)
{
    if (!a || !ref_release(&a->references))
        return;
    for (struct arena_owned *owned = a->owned; owned; owned = owned->next)
        owned->release(owned->object);
    while (a->pieces) {
        struct arena_piece *piece = a->pieces;

        a->pieces = piece->next;
        free(piece);
    }
    free(a);
}
