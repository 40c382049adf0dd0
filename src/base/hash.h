#ifndef BASE_HASH_H
#define BASE_HASH_H
#include <stddef.h>
#include <stdint.h>
static inline uint64_t hash_mix(uint64_t x) { x ^= x >> 31; x *= 0x9E3779B97F4A7C15u; return x ^ x >> 29; }
static inline uint64_t hash_bytes(const void *d, size_t n) { const unsigned char *p = d; uint64_t h = 14695981039346656037u; while (n--) h = (h ^ *p++) * 1099511628211u; return hash_mix(h); }
#endif
