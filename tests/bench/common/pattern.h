/*
 * pattern: the payload, so that every byte that comes back can be checked.
 *
 * A stream is an endless run through one table of random bytes, begun at a place of its own (its
 * seed). The table's length is a prime: messages of any usual size never repeat soon, so a lost,
 * doubled, stale or foreign piece shows.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include <stddef.h>
#include <stdint.h>

enum {
    PATTERN_PERIOD_BYTES = 65521, /* the largest prime under 64 KiB */
    PATTERN_CHUNK_BYTES = 65536,  /* what pattern_at gives in one piece */
};

/*
 * pattern_init():
 * Fill the table. The same bytes in every process: sender and checker need no other agreement.
 */
void pattern_init(void);

/*
 * pattern_at(seed, offset):
 * The PATTERN_CHUNK_BYTES bytes which the stream of ${seed} holds from ${offset} on.
 */
const uint8_t *pattern_at(uint32_t seed, uint64_t offset);

/*
 * pattern_check(seed, offset, data, len):
 * Die, naming the stream and the place, unless these are the bytes of that stream. len is at most
 * PATTERN_CHUNK_BYTES.
 */
void pattern_check(uint32_t seed, uint64_t offset, const uint8_t *data, size_t len);

#endif
