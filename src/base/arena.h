/*
 * base/arena: memory that is taken piece by piece and given back all at once.
 *
 * For what is built once and lives and dies together, as a configuration does. Every piece is its
 * own allocation, so that AddressSanitizer and valgrind see its bounds.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/must.h"

struct arena;

/*
 * arena_create(out):
 * An arena with nothing in it.
 *
 * Thread: any; an arena has one user at a time
 * Errors: 0; -ENOMEM
 */
int arena_create(struct arena **out) NODISCARD;

/*
 * arena_alloc(a, n, size):
 * Zeroed room for ${n} objects of ${size} bytes each, aligned for any type; never NULL for an ${n}
 * of 0.
 *
 * Thread: the user of ${a}
 * Owns:   ${a} owns it until arena_destroy()
 * Errors: NULL (no memory, or ${n} * ${size} overflows)
 */
void *arena_alloc(struct arena *a, size_t n, size_t size) NODISCARD;

/*
 * arena_text(a, text, len):
 * A copy of the ${len} bytes at ${text} with a NUL behind them.
 *
 * Thread: the user of ${a}
 * Owns:   ${a} owns it until arena_destroy()
 * Units:  ${len} bytes
 * Errors: NULL (no memory)
 */
char *arena_text(struct arena *a, const char *text, size_t len) NODISCARD;

/*
 * arena_destroy(a):
 * Free ${a} and all that was taken from it; NULL is allowed.
 *
 * Thread: the user of ${a}
 */
void arena_destroy(struct arena *a);

#endif
