/*
 * base/buffer: bytes that wait to be sent.
 *
 *   0        head            tail        cap
 *   | free   |  bytes        |   free    |      0 <= head <= tail <= cap   (buffer_ok)
 *
 * An empty buffer owns no memory, since nearly every connection's is empty nearly always.
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

/* The least memory that a buffer with bytes takes. */
#define BUFFER_FIRST_BYTES 4096

/*
 * More than anything may wait; 32 bits for each field keep a channel's cold part in one cache line.
 */
#define BUFFER_MAX_BYTES (UINT32_C(1) << 31)

/*
 * buffer_init(b) / buffer_clear(b):
 * Make ${b} empty; clear gives its memory back.
 *
 * Thread: owner of ${b}
 */
void buffer_init(struct buffer *b);
void buffer_clear(struct buffer *b);

/*
 * buffer_ok(b):
 * Does the drawing above hold?
 *
 * Thread: owner of ${b}
 */
bool buffer_ok(const struct buffer *b);

/*
 * buffer_append(b, data, len):
 * Add a copy of ${len} bytes at the end.
 *
 * Thread: owner of ${b}
 * Units:  bytes
 * Errors: 0; -ENOMEM (${b} unchanged)
 */
int buffer_append(struct buffer *b, const void *data, size_t len) NODISCARD;

/*
 * buffer_consume(b, len):
 * Take ${len} bytes, no more than there are, off the front. The last byte takes the memory with it.
 *
 * Thread: owner of ${b}
 * Units:  bytes
 */
void buffer_consume(struct buffer *b, size_t len);

/*
 * buffer_bytes(b) / buffer_front(b):
 * How many bytes there are, and where they begin.
 *
 * Thread: owner of ${b}
 * Units:  bytes
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
