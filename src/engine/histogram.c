#include "engine/histogram.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/must.h"

void histogram_read(const struct histogram *h, struct histogram_view *out)
{
    out->count = 0;
    out->ns = atomic_load_explicit(&h->ns, memory_order_relaxed);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        out->bucket[i] = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);
        out->count += out->bucket[i];
    }
}

int64_t histogram_limit_ns(unsigned bucket)
{
    MUST(bucket < HISTOGRAM_BUCKETS);
    return bucket == HISTOGRAM_BUCKETS - 1 ? CLOCK_NEVER : (INT64_C(1) << bucket) * NS_PER_US;
}

/* Rounded up: the 500 permille quantile of three values is the second. */
static uint64_t histogram_rank(const struct histogram_view *v, unsigned permille)
{
    MUST(permille >= 1 && permille <= 1000);
    return v->count / 1000 * permille + (v->count % 1000 * permille + 999) / 1000;
}

int64_t histogram_between_ns(const struct histogram_view *v, unsigned permille)
{
    uint64_t rank = histogram_rank(v, permille), seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        int64_t from_ns = i > 0 ? histogram_limit_ns(i - 1) : 0;

        if (v->bucket[i] > 0 && seen + v->bucket[i] >= rank)
            return from_ns + (int64_t)((double)(histogram_limit_ns(i) - from_ns) *
                                       (double)(rank - seen) / (double)v->bucket[i]);
        seen += v->bucket[i];
    }
    return v->count > 0 ? CLOCK_NEVER : 0;
}

struct histogram_view histogram_since(const struct histogram_view *now,
                                      const struct histogram_view *before)
{
    struct histogram_view v = {.count = now->count - before->count, .ns = now->ns - before->ns};

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        v.bucket[i] = now->bucket[i] - before->bucket[i];
    return v;
}

int64_t histogram_quantile_ns(const struct histogram_view *v, unsigned permille)
{
    uint64_t rank = histogram_rank(v, permille), seen = 0;

    if (v->count == 0)
        return 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += v->bucket[i];
        if (seen >= rank)
            return histogram_limit_ns(i);
    }
    return CLOCK_NEVER;
}

static int histogram_format_bucket(char *text, size_t size, unsigned i, uint64_t n)
{
    if (i == HISTOGRAM_BUCKETS - 1)
        return snprintf(text, size, " longer=%" PRIu64, n);
    return snprintf(text, size, " under_%" PRId64 "us=%" PRIu64, histogram_limit_ns(i) / NS_PER_US,
                    n);
}

const char *histogram_format(char *text, size_t size, const struct histogram_view *v)
{
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS && len < size; i++)
        if (v->bucket[i] > 0)
            len += (size_t)histogram_format_bucket(text + len, size - len, i, v->bucket[i]);
    return text;
}
