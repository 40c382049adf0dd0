/*
 * base/arena: arena allocator: releasing the last reference to an arena frees all its pieces.
 *
 * Each piece is one calloc(), so that AddressSanitizer and valgrind see its bounds.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/must.h"

struct arena;

/*
 * arena_create(out):
 * Create an empty arena; the caller has its first reference.
 *
 * Errors: 0; -ENOMEM
 */
int arena_create(struct arena **out) NODISCARD;

/*
 * arena_alloc(a, n, size):
 * Allocate ${n} >= 0 zeroed objects, aligned for any type.
 *
 * Thread: owner
 * Errors: NULL (no memory, or overflow)
 */
void *arena_alloc(struct arena *a, size_t n, size_t size) NODISCARD;

/*
 * arena_text(a, text, len):
 * Copy ${text} and append a NUL.
 *
 * Thread: owner
 * Errors: NULL (no memory)
 */
char *arena_text(struct arena *a, const char *text, size_t len) NODISCARD;

/*
 * arena_own(a, object, release):
 * Register ${object}: the thread that frees ${a} first calls release(object).
 *
 * Thread: owner
 * Owns:   on 0 ${a} owns ${object}
 * Errors: 0; -ENOMEM
 */
int arena_own(struct arena *a, void *object, void (*release)(void *object)) NODISCARD;

/*
 * arena_hold(a) / arena_release(a):
 * Add a reference and return ${a} / release a reference; the last release frees ${a} and all its
 * pieces. NULL, for memory that is never freed, is allowed.
 */
struct arena *arena_hold(struct arena *a);
void arena_release(struct arena *a);

#endif
