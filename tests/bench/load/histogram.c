#include "load/histogram.h"

#include <math.h>
#include <string.h>

void histogram_reset(struct histogram *h)
{
    memset(h, 0, sizeof(*h));
}

/*
 *   value:  0 .. 63      64 .. 127    128 .. 255      256 .. 511   ...
 *   step:   1 wide       1 wide       2 wide          4 wide       ...
 *   index:  0 .. 63      64 .. 127    128 .. 191      192 .. 255   ...
 */
static unsigned histogram_index(uint64_t value_ns)
{
    unsigned shift;

    if (value_ns < HISTOGRAM_STEPS)
        return (unsigned)value_ns;
    shift = 63u - (unsigned)__builtin_clzll(value_ns) - HISTOGRAM_STEP_BITS;
    return shift * HISTOGRAM_STEPS + (unsigned)(value_ns >> shift);
}

/* The highest value that histogram_index maps to ${index}. */
static uint64_t histogram_upper_ns(unsigned index)
{
    unsigned shift;

    if (index < HISTOGRAM_STEPS)
        return index;
    shift = index / HISTOGRAM_STEPS - 1;
    return (((uint64_t)index - shift * HISTOGRAM_STEPS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, uint64_t value_ns)
{
    h->counts[histogram_index(value_ns)]++;
    h->total++;
    if (value_ns > h->max_ns)
        h->max_ns = value_ns;
}

uint64_t histogram_percentile_ns(const struct histogram *h, double percent)
{
    uint64_t wanted = (uint64_t)ceil((double)h->total * percent / 100.0);
    uint64_t seen = 0;
    unsigned index = 0;

    if (h->total == 0)
        return 0;
    while ((seen += h->counts[index]) < wanted)
        index++;
    return histogram_upper_ns(index) < h->max_ns ? histogram_upper_ns(index) : h->max_ns;
}
