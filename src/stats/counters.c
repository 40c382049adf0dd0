#include "stats/counters.h"

#include "base/must.h"
#include "stats/figure.h"

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

void counters_moved(struct counters *c, uint64_t bytes_in, uint64_t bytes_out)
{
    counters_add(&c->bytes_in, bytes_in);
    counters_add(&c->bytes_out, bytes_out);
}

void counters_ended(struct counters *c, enum session_reason reason, uint64_t bytes_in,
                    uint64_t bytes_out)
{
    MUST(reason > SESSION_OPEN && reason < SESSION_REASONS);
    counters_moved(c, bytes_in, bytes_out);
    atomic_fetch_add_explicit(&c->ended[reason], 1, memory_order_release); /* see note: sums */
}

void counters_handed_over(struct counters *c)
{
    atomic_fetch_add_explicit(&c->moved, 1, memory_order_release); /* see note: sums */
}

void counters_taken(struct counters *c)
{
    counters_add(&c->taken, 1);
}

void counters_not_taken(struct counters *c)
{
    atomic_fetch_sub_explicit(&c->taken, 1, memory_order_relaxed);
}

void counters_lasted(struct counters *c, int64_t ns)
{
    histogram_count_shared(&c->duration, ns);
}

void counters_connected(struct counters_connects *c, int64_t ns)
{
    histogram_count_shared(&c->time, ns);
}

void counters_connect_failed(struct counters_connects *c)
{
    counters_add(&c->failed, 1);
}

void counters_first_byte(struct counters_connects *c, int64_t ns)
{
    histogram_count_shared(&c->first_byte, ns);
}

void counters_read(const struct counters *c, struct counters_view *out)
{
    /* A session from another process may end here before that process has told its begin. */
    uint64_t ended = atomic_load_explicit(&c->moved, memory_order_acquire);

    for (unsigned i = 0; i < SESSION_REASONS; i++) {
        out->ended[i] = atomic_load_explicit(&c->ended[i], memory_order_acquire);
        ended += out->ended[i];
    }
    out->began = counters_get(&c->began);
    out->bytes_in = counters_get(&c->bytes_in);
    out->bytes_out = counters_get(&c->bytes_out);
    out->open = out->began > ended ? out->began - ended : 0; /* see note: sums */
    histogram_read(&c->duration, &out->duration);
}

static const struct figure counters_rows[] = {
    FIGURE_ROW(struct counters_view, open, "sessions", FIGURE_GAUGE, FIGURE_NUMBER, 0,
               "Sessions open now."),
    FIGURE_ROW(struct counters_view, began, "sessions_total", FIGURE_COUNTER, FIGURE_NUMBER, 0,
               "Sessions; of a server: attempts to connect."),
    FIGURE_OF(struct counters_view, COUNTER, BYTES, bytes_in, "Bytes from clients."),
    FIGURE_OF(struct counters_view, COUNTER, BYTES, bytes_out, "Bytes to clients."),
    FIGURE_OF(struct counters_view, REASONS, NUMBER, ended, "Sessions that ended, by reason."),
};

static const struct figure_table counters_table = {
    FIGURE_TABLE(struct counters_view, counters_rows)};

/* A table of its own, because it is not logged. */
struct counters_durations {
    struct histogram_view duration;
};

static const struct figure counters_durations_rows[] = {
    FIGURE_ROW(struct counters_durations, duration, "session_duration", FIGURE_HISTOGRAM, FIGURE_NS,
               0, "Duration of sessions that were served and have ended."),
};

static const struct figure_table counters_durations_table = {
    .is_not_logged = true, FIGURE_TABLE(struct counters_durations, counters_durations_rows)};

void counters_figures(const struct counters *c, const struct figure_object *object,
                      struct figure_visitor *v)
{
    struct counters_view view;

    counters_read(c, &view);
    figure_show(v, &counters_table, object, &view);
    figure_show(v, &counters_durations_table, object, &view.duration);
}

struct counters_connects_view {
    uint64_t failures;
    int64_t average_ns;
    struct histogram_view duration;
};

static const struct figure counters_connects_rows[] = {
    FIGURE_ROW(struct counters_connects_view, duration.count, "connects", FIGURE_DERIVED,
               FIGURE_NUMBER, 0, "Attempts to connect that succeeded."),
    FIGURE_ROW(struct counters_connects_view, failures, "connect_failures", FIGURE_COUNTER,
               FIGURE_NUMBER, 0, "Attempts to connect that failed."),
    FIGURE_ROW(struct counters_connects_view, average_ns, "connect_ms_average", FIGURE_DERIVED,
               FIGURE_NS, 3, "Average duration of the attempts that succeeded."),
    FIGURE_ROW(struct counters_connects_view, duration, "connect_duration", FIGURE_HISTOGRAM,
               FIGURE_NS, 0, "Duration of the attempts to connect that succeeded."),
};

static const struct figure_table counters_connects_table = {
    FIGURE_TABLE(struct counters_connects_view, counters_connects_rows)};

struct counters_first_bytes {
    struct histogram_view duration;
};

static const struct figure counters_first_bytes_rows[] = {
    FIGURE_ROW(struct counters_first_bytes, duration, "first_byte_duration", FIGURE_HISTOGRAM,
               FIGURE_NS, 0, "Time from the connection until the server's first byte."),
};

static const struct figure_table counters_first_bytes_table = {
    .is_not_logged = true, FIGURE_TABLE(struct counters_first_bytes, counters_first_bytes_rows)};

void counters_connects_figures(const struct counters_connects *c,
                               const struct figure_object *object, struct figure_visitor *v)
{
    struct counters_connects_view view = {.failures = counters_get(&c->failed)};
    struct counters_first_bytes first;

    histogram_read(&c->time, &view.duration);
    if (view.duration.count > 0)
        view.average_ns = (int64_t)(view.duration.ns / view.duration.count);
    figure_show(v, &counters_connects_table, object, &view);
    histogram_read(&c->first_byte, &first.duration);
    figure_show(v, &counters_first_bytes_table, object, &first);
}
