#include "stats/counters.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"

static void counters_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static uint64_t counters_get(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void counters_began(struct counters *c)
{
    counters_add(&c->began, 1);
}

void counters_ended(struct counters *c, enum session_reason reason, uint64_t bytes_in,
                    uint64_t bytes_out)
{
    MUST(reason > SESSION_OPEN && reason < SESSION_REASONS);
    counters_add(&c->bytes_in, bytes_in);
    counters_add(&c->bytes_out, bytes_out);
    atomic_fetch_add_explicit(&c->ended[reason], 1, memory_order_release); /* see note: sums */
}

void counters_connected(struct counters_connects *c, int64_t ns)
{
    counters_add(&c->ns, (uint64_t)ns);
    counters_add(&c->time.bucket[histogram_bucket(ns)],
                 1); /* not histogram_count(): it has one writer only */
}

void counters_connect_failed(struct counters_connects *c)
{
    counters_add(&c->failed, 1);
}

void counters_read(const struct counters *c, struct counters_view *out)
{
    uint64_t ended = 0;

    for (unsigned i = 0; i < SESSION_REASONS; i++) {
        out->ended[i] = atomic_load_explicit(&c->ended[i], memory_order_acquire);
        ended += out->ended[i];
    }
    out->began = counters_get(&c->began);
    out->bytes_in = counters_get(&c->bytes_in);
    out->bytes_out = counters_get(&c->bytes_out);
    out->open = out->began - ended; /* see note: sums */
}

/* Longest reason with a count of 20 digits. */
#define COUNTERS_REASON_BYTES 40

void counters_log(const struct counters *c, const char *kind, const char *name)
{
    char reasons[SESSION_REASONS * COUNTERS_REASON_BYTES] = "", word[SESSION_REASON_WORD_BYTES];
    struct counters_view v;
    size_t len = 0;

    counters_read(c, &v);
    for (unsigned i = SESSION_OPEN + 1; i < SESSION_REASONS; i++)
        if (v.ended[i] > 0)
            len += (size_t)snprintf(reasons + len, sizeof(reasons) - len, " %s=%" PRIu64,
                                    session_reason_word(word, (enum session_reason)i), v.ended[i]);
    log_notice("stats %s %s sessions=%" PRIu64 " sessions_total=%" PRIu64 " bytes_in=%" PRIu64
               " bytes_out=%" PRIu64 "%s",
               kind, name, v.open, v.began, v.bytes_in, v.bytes_out, reasons);
}

void counters_log_connects(const struct counters_connects *c, const char *kind, const char *name)
{
    double ms = (double)counters_get(&c->ns) / (double)NS_PER_MS;
    char buckets[LOG_LINE_BYTES];
    struct histogram_view time;

    histogram_read(&c->time, &time);
    log_notice("stats %s %s connects=%" PRIu64 " connect_failures=%" PRIu64
               " connect_ms_average=%.3f%s",
               kind, name, time.count, counters_get(&c->failed),
               time.count > 0 ? ms / (double)time.count : 0,
               histogram_format(buckets, sizeof(buckets), &time));
}
