/*
 * base/buffer: byte queue for unsent data.
 *
 *   0        head            tail        cap
 *   | free   |  bytes        |   free    |      0 <= head <= tail <= cap   (buffer_ok)
 *
 * An empty buffer, the usual case, owns no memory.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct buffer {
    uint8_t *data;
    uint32_t head;
    uint32_t tail;
    uint32_t cap;
};

/* Capacity of the first allocation; growing doubles it. */
#define BUFFER_FIRST_BYTES 4096

/* The largest power of two that fits the 32-bit offsets. */
#define BUFFER_MAX_BYTES (UINT32_C(1) << 31)

/*
 * buffer_init(b) / buffer_clear(b):
 * Make ${b} empty / free its memory and make it empty.
 *
 * Thread: owner
 */
void buffer_init(struct buffer *b);
void buffer_clear(struct buffer *b);

/* buffer_ok(b): does the invariant above hold? Thread: owner */
bool buffer_ok(const struct buffer *b);

/*
 * buffer_append(b, data, len):
 * Append a copy of ${len} bytes.
 *
 * Thread: owner
 * Errors: 0; -ENOMEM (also over BUFFER_MAX_BYTES; ${b} unchanged)
 */
int buffer_append(struct buffer *b, const void *data, size_t len) NODISCARD;

/*
 * buffer_consume(b, len):
 * Remove the first ${len} bytes; an emptied buffer frees its memory.
 *
 * Thread: owner
 */
void buffer_consume(struct buffer *b, size_t len);

/*
 * buffer_bytes(b) / buffer_front(b):
 * Return the number of bytes / a pointer to the first.
 *
 * Thread: owner
 */
static inline size_t buffer_bytes(const struct buffer *b)
{
    return b->tail - b->head;
}

static inline const uint8_t *buffer_front(const struct buffer *b)
{
    return b->data + b->head;
}

#endif
