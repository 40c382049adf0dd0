/*
 * base/hash: 64 bits for any bytes, and 64 bits for 64 bits.
 *
 * Hashes depend on their arguments alone: not on the process, the machine or its byte order. So
 * what is placed by a hash is found there again after a restart, and by another node.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
    uint64_t k0, k1;
};

/*
 * hash_bytes(key, data, len):
 * SipHash-2-4 of ${data}. Nobody who does not know ${key} can choose data that collide.
 *
 * Thread: any
 * Units:  ${len} bytes, also 0
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012)
 */
uint64_t hash_bytes(const struct hash_key *key, const void *data, size_t len);

/*
 * hash_stable(data, len):
 * hash_bytes() under a key that never changes, for what must be found again.
 *
 * Thread: any
 * Units:  ${len} bytes, also 0
 */
uint64_t hash_stable(const void *data, size_t len);

/*
 * hash_mix(x):
 * Spread ${x} over all bits, no two values to the same one: numbers that are close, as those of a
 * counter, come out as good as random.
 *
 * Thread: any
 * Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014),
 *         SplitMix64
 */
static inline uint64_t hash_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/*
 * hash_seed():
 * A number that is different in each process, to begin a sequence of hash_mix() with.
 *
 * Thread: any
 */
uint64_t hash_seed(void);

/*
 * hash_reduce(hash, n):
 * A number below ${n} from the upper half of ${hash}, each as likely as another: what modulo does,
 * without a division.
 *
 * Thread: any
 * Source: D. Lemire, "Fast Random Integer Generation in an Interval" (2019)
 */
static inline uint32_t hash_reduce(uint64_t hash, uint32_t n)
{
    return (uint32_t)((hash >> 32) * n >> 32);
}

#endif
