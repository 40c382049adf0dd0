/*
 * base/arena: arena allocator: all pieces are freed at once, with the last reference.
 *
 * Each piece is its own allocation: AddressSanitizer and valgrind see its bounds.
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
 * Thread: any; one user at a time
 * Errors: 0; -ENOMEM
 */
int arena_create(struct arena **out) NODISCARD;

/*
 * arena_alloc(a, n, size):
 * Allocate ${n} >= 0 zeroed objects, aligned for any type.
 *
 * Thread: user
 * Errors: NULL (no memory, or overflow)
 */
void *arena_alloc(struct arena *a, size_t n, size_t size) NODISCARD;

/*
 * arena_text(a, text, len):
 * Copy ${text} and append a NUL.
 *
 * Thread: user
 * Errors: NULL (no memory)
 */
char *arena_text(struct arena *a, const char *text, size_t len) NODISCARD;

/*
 * arena_hold(a) / arena_release(a):
 * Add a reference, and return ${a}; give up one. The last frees ${a} and all its pieces. NULL is
 * allowed: pieces that are never freed.
 *
 * Thread: any
 */
struct arena *arena_hold(struct arena *a);
void arena_release(struct arena *a);

#endif
