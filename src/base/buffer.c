#include "base/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void buffer_init(struct buffer *b)
{
    *b = (struct buffer){0};
}

void buffer_clear(struct buffer *b)
{
    free(b->data);
    buffer_init(b);
}

bool buffer_ok(const struct buffer *b)
{
    return b->head <= b->tail && b->tail <= b->cap && (b->data != NULL) == (b->cap > 0);
}

static void buffer_compact(struct buffer *b)
{
    memmove(b->data, b->data + b->head, buffer_bytes(b));
    b->tail -= b->head;
    b->head = 0;
}

static int buffer_grow(struct buffer *b, size_t need)
{
    uint32_t cap = b->cap ? b->cap : BUFFER_FIRST_BYTES;
    uint8_t *data;

    while (cap < need)
        cap *= 2; /* cannot overflow: need <= BUFFER_MAX_BYTES, a power of two */
    data = realloc(b->data, cap);
    if (!data)
        return -ENOMEM;
    b->data = data;
    b->cap = cap;
    return 0;
}

int buffer_append(struct buffer *b, const void *data, size_t len)
{
    if (len == 0)
        return 0;
    if (len > BUFFER_MAX_BYTES - buffer_bytes(b))
        return -ENOMEM;
    if (len > b->cap - b->tail && b->head >= buffer_bytes(b) && b->head > 0)
        buffer_compact(b);
    if (len > BUFFER_MAX_BYTES - b->tail)
        buffer_compact(b);
    if (len > b->cap - b->tail && buffer_grow(b, b->tail + len) < 0)
        return -ENOMEM;
    memcpy(b->data + b->tail, data, len);
    b->tail += (uint32_t)len;
    return 0;
}

void buffer_consume(struct buffer *b, size_t len)
{
    MUST(len <= buffer_bytes(b));
    b->head += (uint32_t)len;
    if (b->head == b->tail)
        buffer_clear(b);
}
