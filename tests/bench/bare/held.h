/* held: bytes that a blocked receiver has not taken. */
#ifndef BENCH_HELD_H
#define BENCH_HELD_H

#include <stddef.h>
#include <stdint.h>

struct held {
    size_t sent_bytes;
    size_t len_bytes;
    uint8_t data[];
};

/*
 * held_new(data, len):
 * A copy; free(3) frees it.
 */
struct held *held_new(const uint8_t *data, size_t len);

#endif
