/*
 * engine/histogram: durations in power-of-two buckets.
 *
 *   bucket 0: under 1 us | 1: under 2 us | ... | 24: under 16.8 s | 25: longer
 *
 * One thread writes, or several by histogram_count_shared(); any thread reads.
 */
#ifndef ENGINE_HISTOGRAM_H
#define ENGINE_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BUCKETS 26

struct histogram {
    _Atomic uint64_t bucket[HISTOGRAM_BUCKETS]; /* accesses are relaxed */
    _Atomic uint64_t ns;                        /* sum of the durations */
};

struct histogram_view {
    uint64_t bucket[HISTOGRAM_BUCKETS];
    uint64_t count;
    uint64_t ns;
};

/* histogram_bucket(ns): return the bucket of ${ns}; 0 if negative. */
static inline unsigned histogram_bucket(int64_t ns)
{
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
    unsigned bucket = us > 0 ? 64 - (unsigned)__builtin_clzll(us) : 0;

    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* histogram_count(h, ns): count one duration. Thread: the writer */
static inline void histogram_count(struct histogram *h, int64_t ns)
{
    _Atomic uint64_t *bucket = &h->bucket[histogram_bucket(ns)];

    atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (ns > 0)
        atomic_store_explicit(&h->ns,
                              atomic_load_explicit(&h->ns, memory_order_relaxed) + (uint64_t)ns,
                              memory_order_relaxed);
}

/* histogram_count_shared(h, ns): as histogram_count(), for several writers. */
static inline void histogram_count_shared(struct histogram *h, int64_t ns)
{
    if (ns > 0)
        atomic_fetch_add_explicit(&h->ns, (uint64_t)ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->bucket[histogram_bucket(ns)], 1, memory_order_relaxed);
}

/* histogram_read(h, out): copy and sum the counts. */
void histogram_read(const struct histogram *h, struct histogram_view *out);

/* histogram_limit_ns(bucket): the upper limit of ${bucket}; CLOCK_NEVER for the last. */
int64_t histogram_limit_ns(unsigned bucket);

/*
 * histogram_quantile_ns(v, permille):
 * The upper limit of the bucket that contains the ${permille} quantile (1 to 1000); 0 if ${v} is
 * empty.
 */
int64_t histogram_quantile_ns(const struct histogram_view *v, unsigned permille);

/*
 * histogram_between_ns(v, permille):
 * As histogram_quantile_ns(), but between the limits of the bucket: its durations are taken to lie
 * at equal distances.
 */
int64_t histogram_between_ns(const struct histogram_view *v, unsigned permille);

/* histogram_since(now, before): return what was counted between two views; the sum as well. */
struct histogram_view histogram_since(const struct histogram_view *now,
                                      const struct histogram_view *before);

/*
 * histogram_format(text, size, v):
 * Format the non-empty buckets as " under_1us=5 ... longer=1", truncated to ${size} > 0 bytes.
 * Returns ${text}.
 */
const char *histogram_format(char *text, size_t size, const struct histogram_view *v);

#endif
