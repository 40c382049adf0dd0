#include "common/pattern.h"

#include "common/die.h"

#include <string.h>

/* The period, and behind it its own beginning again, so that a piece never needs to wrap. */
static uint8_t pattern_table[PATTERN_PERIOD_BYTES + PATTERN_CHUNK_BYTES];

void pattern_init(void)
{
    uint32_t x = 2463534242u; /* xorshift32: Marsaglia, "Xorshift RNGs", 2003 */

    for (size_t i = 0; i < PATTERN_PERIOD_BYTES; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        pattern_table[i] = (uint8_t)(x >> 24);
    }
    for (size_t i = PATTERN_PERIOD_BYTES; i < sizeof(pattern_table); i++)
        pattern_table[i] = pattern_table[i - PATTERN_PERIOD_BYTES];
}

const uint8_t *pattern_at(uint32_t seed, uint64_t offset)
{
    return pattern_table + (seed + offset) % PATTERN_PERIOD_BYTES;
}

void pattern_check(uint32_t seed, uint64_t offset, const uint8_t *data, size_t len)
{
    const uint8_t *want = pattern_at(seed, offset);
    size_t i = 0;

    if (memcmp(data, want, len) == 0)
        return;
    while (data[i] == want[i])
        i++;
    die("stream %u: wrong byte at offset %llu", seed, (unsigned long long)(offset + i));
}
