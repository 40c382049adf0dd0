#include "tls/tls_counters.h"

#include "base/must.h"
#include "stats/counters_set.h"
#include "stats/figure.h"

struct tls_counters_view {
    uint64_t tls_full, tls_resumed, tls_failed, tls_timed_out, tls_refused, tls_truncated;
};

static const struct figure tls_counters_rows[] = {
    FIGURE_OF(struct tls_counters_view, COUNTER, NUMBER, tls_full, "Full TLS handshakes."),
    FIGURE_OF(struct tls_counters_view, COUNTER, NUMBER, tls_resumed,
              "TLS handshakes that resumed a session."),
    FIGURE_OF(struct tls_counters_view, COUNTER, NUMBER, tls_failed,
              "TLS handshakes that failed, by an alert, a broken record or an end of file."),
    FIGURE_OF(struct tls_counters_view, COUNTER, NUMBER, tls_timed_out,
              "TLS handshakes that were not done in time."),
    FIGURE_OF(struct tls_counters_view, COUNTER, NUMBER, tls_refused,
              "TLS handshakes that were refused, as too many waited for a thread."),
    FIGURE_OF(struct tls_counters_view, COUNTER, NUMBER, tls_truncated,
              "TLS streams that ended without close_notify."),
};

static const struct figure_table tls_counters_table = {
    .is_not_logged_at_zero = true, FIGURE_TABLE(struct tls_counters_view, tls_counters_rows)};

static uint64_t tls_counters_get(const _Atomic uint64_t *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

void tls_counters_figures(const struct tls_counters *c, const struct figure_object *object,
                          struct figure_visitor *v)
{
    const struct tls_counters_view view = {.tls_full = tls_counters_get(&c->full),
                                           .tls_resumed = tls_counters_get(&c->resumed),
                                           .tls_failed = tls_counters_get(&c->failed),
                                           .tls_timed_out = tls_counters_get(&c->timed_out),
                                           .tls_refused = tls_counters_get(&c->refused),
                                           .tls_truncated = tls_counters_get(&c->truncated)};

    figure_show(v, &tls_counters_table, object, &view);
}

void tls_counters_add(struct tls_counters *c, struct counters_set *set)
{
    counters_set_add(set, "tls_full", &c->full);
    counters_set_add(set, "tls_resumed", &c->resumed);
    counters_set_add(set, "tls_failed", &c->failed);
    counters_set_add(set, "tls_timed_out", &c->timed_out);
    counters_set_add(set, "tls_refused", &c->refused);
    counters_set_add(set, "tls_truncated", &c->truncated);
}
