#include "base/hash.h"

#include <sys/random.h>

#include "base/clock.h"

/* Compression and finalization rounds: the 2 and 4 of SipHash-2-4. */
#define HASH_ROUNDS_WORD 2
#define HASH_ROUNDS_END  4

#define HASH_WORD_BYTES 8

struct hash_state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t hash_rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void hash_rounds(struct hash_state *s, int n)
{
    while (n-- > 0) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = hash_rotate(s->v1, 13) ^ s->v0;
        s->v3 = hash_rotate(s->v3, 16) ^ s->v2;
        s->v0 = hash_rotate(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = hash_rotate(s->v1, 17) ^ s->v2;
        s->v3 = hash_rotate(s->v3, 21) ^ s->v0;
        s->v2 = hash_rotate(s->v2, 32);
    }
}

/* Read a little-endian number of ${len} bytes. */
static inline uint64_t hash_word(const unsigned char *at, size_t len)
{
    uint64_t word = 0;

    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

static inline void hash_absorb(struct hash_state *s, uint64_t word)
{
    s->v3 ^= word;
    hash_rounds(s, HASH_ROUNDS_WORD);
    s->v0 ^= word;
}

uint64_t hash_bytes(const struct hash_key *key, const void *data, size_t len)
{
    /* Constants of the paper: "somepseudorandomlygeneratedbytes". */
    struct hash_state s = {.v0 = key->k0 ^ UINT64_C(0x736f6d6570736575),
                           .v1 = key->k1 ^ UINT64_C(0x646f72616e646f6d),
                           .v2 = key->k0 ^ UINT64_C(0x6c7967656e657261),
                           .v3 = key->k1 ^ UINT64_C(0x7465646279746573)};
    const unsigned char *at = data;
    size_t left = len;

    for (; left >= HASH_WORD_BYTES; left -= HASH_WORD_BYTES, at += HASH_WORD_BYTES)
        hash_absorb(&s, hash_word(at, HASH_WORD_BYTES));
    hash_absorb(&s, hash_word(at, left) | (uint64_t)len << 56);
    s.v2 ^= 0xff;
    hash_rounds(&s, HASH_ROUNDS_END);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t hash_stable(const void *data, size_t len)
{
    /* First bits of pi. Changing the key would move clients to other servers. */
    static const struct hash_key key = {UINT64_C(0x243f6a8885a308d3), UINT64_C(0x13198a2e03707344)};

    return hash_bytes(&key, data, len);
}

uint64_t hash_seed(void)
{
    uint64_t seed;

    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
        seed = (uint64_t)clock_now_ns();
    return seed;
}
