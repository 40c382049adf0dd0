/*
 * engine/histogram: how often a duration was about how long, in powers of two.
 *
 *   bucket 0: under 1 us | 1: under 2 us | 2: under 4 us | ... | 24: under 16.8 s | 25: longer
 *
 * One thread counts; any thread reads, and gets numbers each of which is exact.
 */
#ifndef ENGINE_HISTOGRAM_H
#define ENGINE_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS 26

struct histogram {
    _Atomic uint64_t bucket[HISTOGRAM_BUCKETS]; /* relaxed: statistics */
};

/* A reading of one. */
struct histogram_view {
    uint64_t bucket[HISTOGRAM_BUCKETS];
    uint64_t count;
};

/*
 * histogram_bucket(ns):
 * Which bucket ${ns} belongs to; a negative duration counts as 0.
 *
 * Thread: any
 * Units:  ns
 */
static inline unsigned histogram_bucket(int64_t ns)
{
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
    unsigned bucket = us > 0 ? 64 - (unsigned)__builtin_clzll(us) : 0;

    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/*
 * histogram_count(h, ns):
 * One more of ${ns}.
 *
 * Thread: the one that counts
 * Units:  ns
 */
static inline void histogram_count(struct histogram *h, int64_t ns)
{
    _Atomic uint64_t *bucket = &h->bucket[histogram_bucket(ns)];

    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/*
 * histogram_read(h, out):
 * The counts now.
 *
 * Thread: any
 */
void histogram_read(const struct histogram *h, struct histogram_view *out);

/*
 * histogram_limit_ns(bucket):
 * What bucket ${bucket} stays below; CLOCK_NEVER for the last.
 *
 * Thread: any
 */
int64_t histogram_limit_ns(unsigned bucket);

/*
 * histogram_quantile_ns(v, permille):
 * The limit of the bucket in which the value lies that ${permille} of a thousand do not exceed; 0
 * when nothing was counted.
 *
 * Thread: any
 * Units:  ns; ${permille} 1 to 1000
 */
int64_t histogram_quantile_ns(const struct histogram_view *v, unsigned permille);

/*
 * histogram_format(text, size, v):
 * " under_1us=5 under_4us=2 ... longer=1": the buckets that are not empty, as far as there is room.
 * Returns ${text}.
 *
 * Thread: any
 * Units:  bytes; ${size} at least 1
 */
const char *histogram_format(char *text, size_t size, const struct histogram_view *v);

#endif
