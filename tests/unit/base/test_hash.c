/* base/hash: SipHash as its authors have it, and what the mixer promises. */
#include <stdlib.h>

#include "base/hash.h"
#include "support/suite.h"

/* The key and the data of the reference implementation's vectors: 00 01 02 ... */
static const struct hash_key counting_key = {UINT64_C(0x0706050403020100),
                                             UINT64_C(0x0f0e0d0c0b0a0908)};
static unsigned char counting[64];

static void setup(void)
{
    for (unsigned i = 0; i < sizeof(counting); i++)
        counting[i] = (unsigned char)i;
}

static const struct {
    size_t len;
    uint64_t hash;
} vectors[] = {
    {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
    {7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
    {9, UINT64_C(0x9e0082df0ba9e4b0)},  {15, UINT64_C(0xa129ca6149be45e5)},
    {16, UINT64_C(0x3f2acc7f57c29bdb)}, {23, UINT64_C(0xa80c038ccd5ccec8)},
    {63, UINT64_C(0x958a324ceb064572)},
};

GROUP(hash, setup, NULL);

TEST_EACH(hash, hash_is_siphash_2_4, (int)(sizeof(vectors) / sizeof(vectors[0])))
{
    ck_assert_uint_eq(hash_bytes(&counting_key, counting, vectors[_i].len), vectors[_i].hash);
}

TEST(hash, alignment_of_the_data_does_not_matter)
{
    unsigned char room[sizeof(counting) + 8];
    uint64_t expected = hash_bytes(&counting_key, counting, 20);

    for (unsigned shift = 0; shift < 8; shift++) {
        for (unsigned i = 0; i < 20; i++)
            room[shift + i] = counting[i];
        ck_assert_uint_eq(hash_bytes(&counting_key, room + shift, 20), expected);
    }
}

TEST(hash, another_key_gives_another_hash)
{
    struct hash_key other = counting_key;

    other.k1 ^= 1;
    ck_assert_uint_ne(hash_bytes(&counting_key, counting, 9), hash_bytes(&other, counting, 9));
}

TEST(hash, stable_hash_is_the_same_in_every_version)
{
    ck_assert_uint_eq(hash_stable("", 0), UINT64_C(0x75c31dac90b83099));
    ck_assert_uint_eq(hash_stable("10.1.2.3:80", 11), UINT64_C(0x610a9143a5ab53be));
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

TEST(hash, mixer_is_a_permutation)
{
    enum { N = 100000 };
    uint64_t *mixed = malloc(N * sizeof(*mixed));

    for (uint64_t i = 0; i < N; i++)
        mixed[i] = hash_mix(i);
    qsort(mixed, N, sizeof(*mixed), by_value);
    for (int i = 1; i < N; i++)
        ck_assert_uint_ne(mixed[i - 1], mixed[i]);
    free(mixed);
}

TEST(hash, changing_one_bit_changes_about_half_of_the_bits)
{
    for (unsigned bit = 0; bit < 64; bit++) {
        unsigned changed = 0;

        for (uint64_t i = 0; i < 1000; i++)
            changed +=
                (unsigned)__builtin_popcountll(hash_mix(i) ^ hash_mix(i ^ UINT64_C(1) << bit));
        ck_assert_uint_gt(changed, 31000);
        ck_assert_uint_lt(changed, 33000);
    }
}

TEST(hash, reduced_hash_is_in_range_and_evenly_spread)
{
    unsigned count[7] = {0};

    for (uint64_t i = 0; i < 70000; i++) {
        uint32_t at = hash_reduce(hash_mix(i), 7);

        ck_assert_uint_lt(at, 7);
        count[at]++;
    }
    for (int i = 0; i < 7; i++) {
        ck_assert_uint_gt(count[i], 9500);
        ck_assert_uint_lt(count[i], 10500);
    }
    ck_assert_uint_eq(hash_reduce(UINT64_MAX, 65535), 65534);
    ck_assert_uint_eq(hash_reduce(UINT64_MAX, 1), 0);
    ck_assert_uint_eq(hash_reduce(0, 9), 0);
}
