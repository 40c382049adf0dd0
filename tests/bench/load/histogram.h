/*
 * histogram: log-linear counts of durations: 64 equal steps in every power of two, so a percentile
 * is read with an error of at most 1.6 %, at the cost of one increment a value.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_STEP_BITS = 6,
    HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
    HISTOGRAM_OCTAVES = 64 - HISTOGRAM_STEP_BITS,
};

struct histogram {
    uint64_t total;
    uint64_t max_ns;
    uint64_t counts[(HISTOGRAM_OCTAVES + 1) * HISTOGRAM_STEPS];
};

/*
 * histogram_reset(h):
 * Forget all values.
 */
void histogram_reset(struct histogram *h);

/*
 * histogram_add(h, value_ns):
 * Count one value.
 */
void histogram_add(struct histogram *h, uint64_t value_ns);

/*
 * histogram_percentile_ns(h, percent):
 * The upper edge of the step in which ${percent} of the values are reached; 0 without values.
 */
uint64_t histogram_percentile_ns(const struct histogram *h, double percent);

#endif
