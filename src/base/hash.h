/*
 * base/hash: SipHash for bytes, SplitMix64 for integers.
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
 * Return the SipHash-2-4 of ${data}. If ${key} is secret, an attacker cannot construct collisions.
 *
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012)
 */
uint64_t hash_bytes(const struct hash_key *key, const void *data, size_t len);

/*
 * hash_stable(data, len):
 * Call hash_bytes() with a fixed key: hashes stay the same across restarts.
 */
uint64_t hash_stable(const void *data, size_t len);

/*
 * hash_mix(x):
 * Map ${x} one to one to a pseudo-random number.
 *
 * Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014)
 */
static inline uint64_t hash_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* hash_seed(): return a random start for a counter; hash_mix(counter) gives random numbers. */
uint64_t hash_seed(void);

/*
 * hash_reduce(hash, n):
 * Map the upper 32 bits of ${hash} evenly to 0 ... ${n} - 1, without a division.
 *
 * Source: D. Lemire, "Fast Random Integer Generation in an Interval" (2019)
 */
static inline uint32_t hash_reduce(uint64_t hash, uint32_t n)
{
    return (uint32_t)((hash >> 32) * n >> 32);
}

#endif
