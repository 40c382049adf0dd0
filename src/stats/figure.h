/*
 * stats/figure: tables that describe the figures (statistics) of objects.
 *
 * A table describes the members of a struct that holds the values of one object at one time, and
 * live counters: atomics of the object itself. Only the table names a figure: the log lines of
 * SIGRTMIN (stats/figure_log), metrics (stats/exposition) and JSON (stats/figure_json) follow from
 * it, and what an upgrade hands over (counters_set_add_table()).
 *
 *   walk over objects -> figure_show(visitor, table, object, values) -> log line, JSON, metric
 *
 * note: names. The counter `poll_ms` of a loop is the metric reactord_loop_poll_seconds_total: the
 * subject, the table's prefix, the name with its base unit, and _total for a counter.
 */
#ifndef STATS_FIGURE_H
#define STATS_FIGURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/histogram.h"

struct address;

enum figure_subject {
    FIGURE_PROCESS,
    FIGURE_LOOP,
    FIGURE_EXECUTOR,
    FIGURE_LOOKUPS,
    FIGURE_HANDSHAKES,
    FIGURE_CERTIFICATE,
    FIGURE_MEMORY,
    FIGURE_OVERLOAD,
    FIGURE_REBALANCE,
    FIGURE_HANDOFF,
    FIGURE_LISTENER,
    FIGURE_LIMITS, /* a [limits NAME] */
    FIGURE_UPSTREAM,
    FIGURE_SERVER,
    FIGURE_ACCESS_LOG,
    FIGURE_SUBJECTS
};

enum figure_kind {
    FIGURE_COUNTER,
    FIGURE_GAUGE,
    FIGURE_STATE,     /* one of a few words; its metric is 1, with the word as label */
    FIGURE_TEXT,      /* text; no metric */
    FIGURE_DERIVED,   /* follows from a histogram: only in log lines */
    FIGURE_HISTOGRAM, /* last in its table */
    FIGURE_REASONS    /* a counter for each enum session_reason; last in its table */
};

enum figure_unit { FIGURE_NUMBER, FIGURE_BYTES, FIGURE_PERCENT, FIGURE_NS };

/* C type of the member, set by FIGURE_TYPE(). */
enum figure_type {
    FIGURE_BOOL,
    FIGURE_UNSIGNED,
    FIGURE_UINT64,
    FIGURE_INT64,
    FIGURE_STRING, /* const char *; NULL: empty */
    FIGURE_TIMES,  /* struct histogram_view */
    FIGURE_ENDS,   /* uint64_t[SESSION_REASONS] */
    FIGURE_LIST    /* struct figure_addresses; FIGURE_TEXT only, and in no log line */
};

struct figure_addresses {
    const struct address *list;
    unsigned n;
};

struct figure {
    const char *name; /* in log lines and JSON; FIGURE_NS: ends in _ms, unless a histogram */
    const char *help;
    enum figure_kind kind;
    enum figure_unit unit;
    enum figure_type type;
    unsigned decimals; /* of milliseconds in log lines */
    bool is_live;      /* an atomic of the object, not a member of the values */
    size_t offset;
};

/* clang-format off */
#define FIGURE_TYPE(s, member)                    \
    _Generic(((s *)0)->member,                    \
             _Bool: FIGURE_BOOL,                  \
             unsigned: FIGURE_UNSIGNED,           \
             uint64_t: FIGURE_UINT64,             \
             int64_t: FIGURE_INT64,               \
             const char *: FIGURE_STRING,         \
             struct histogram_view: FIGURE_TIMES, \
             uint64_t *: FIGURE_ENDS,             \
             struct figure_addresses: FIGURE_LIST)
#define FIGURE_LIVE_TYPE(s, member)         \
    _Generic(&((s *)0)->member,             \
             atomic_bool *: FIGURE_BOOL,    \
             atomic_uint *: FIGURE_UNSIGNED, \
             _Atomic uint64_t *: FIGURE_UINT64, \
             _Atomic int64_t *: FIGURE_INT64)
/* clang-format on */

#define FIGURE_ROW(s, member, key, figure_kind, figure_unit, digits, text)                  \
    {                                                                                       \
        .name = (key), .help = (text), .kind = (figure_kind), .unit = (figure_unit),        \
        .type = FIGURE_TYPE(s, member), .decimals = (digits), .offset = offsetof(s, member) \
    }

/*
 * FIGURE_OF: a row for ${member} of ${s}, with the member's name. FIGURE_MS_OF: a row for
 * ${member}_ns, named ${member}_ms: in milliseconds in log lines and JSON, in seconds in metrics.
 */
#define FIGURE_OF(s, kind, unit, member, help) \
    FIGURE_ROW(s, member, #member, FIGURE_##kind, FIGURE_##unit, 0, help)
#define FIGURE_MS_OF(s, kind, member, digits, help) \
    FIGURE_ROW(s, member##_ns, #member "_ms", FIGURE_##kind, FIGURE_NS, digits, help)

/* FIGURE_LIVE: a row named ${key} for ${place}, an atomic of the live struct ${s}. */
#define FIGURE_LIVE(s, figure_kind, figure_unit, place, key, text)                                 \
    {                                                                                              \
        .name = (key), .help = (text), .kind = FIGURE_##figure_kind, .unit = FIGURE_##figure_unit, \
        .type = FIGURE_LIVE_TYPE(s, place), .is_live = true, .offset = offsetof(s, place)          \
    }

/* The figures of one struct; they make one log line. */
struct figure_table {
    const char *word;   /* first word of the log line; NULL: the word of the object's subject */
    const char *part;   /* word behind the object's name in the log line, key in JSON; or NULL */
    const char *prefix; /* prefix of the names in metrics and JSON; NULL: none */
    bool is_not_logged;
    bool is_not_logged_at_zero;
    const struct figure *figures;
    unsigned n;
    size_t bytes;   /* size of the values */
    size_t view_at; /* of the struct in the values, behind the values of live rows */
};

#define FIGURE_TABLE(s, rows) .figures = (rows), .n = ARRAY_LEN(rows), .bytes = sizeof(s)

/* With live rows; ${view_bytes}: size of the struct of the other rows, or 0. */
#define FIGURE_LIVE_TABLE(view_bytes, rows)                                                 \
    .figures = (rows), .n = ARRAY_LEN(rows), .view_at = ARRAY_LEN(rows) * sizeof(uint64_t), \
    .bytes = ARRAY_LEN(rows) * sizeof(uint64_t) + (view_bytes)

/*
 * The object whose figures are shown. Visitors tell objects apart by these pointers, which are
 * valid while the object is shown.
 */
struct figure_object {
    enum figure_subject subject;
    const char *name;  /* NULL: the only object of its subject */
    const char *owner; /* FIGURE_SERVER: upstream; FIGURE_CERTIFICATE: [tls] section; or NULL */
};

struct figure_visitor {
    /* ${values}: see figure_value(), valid during the call; words of FIGURE_STATE are literals. */
    void (*visit)(struct figure_visitor *v, const struct figure_table *table,
                  const struct figure_object *object, const void *values);
};

/* Names of a subject; NULL: none. */
struct figure_words {
    const char *log;
    const char *metric;
    const char *label;
    const char *owner_label;
};

/* figure_show(v, table, object, values): show the figures of ${object} in ${values} to ${v}. */
void figure_show(struct figure_visitor *v, const struct figure_table *table,
                 const struct figure_object *object, const void *values);

/*
 * figure_show_live(v, table, object, values, live):
 * As figure_show(), of a table with live rows. ${values}: NULL if the table has no other rows.
 */
void figure_show_live(struct figure_visitor *v, const struct figure_table *table,
                      const struct figure_object *object, const void *values, const void *live);

/* figure_value(table, f, values): return the value of the row ${f}. */
static inline const void *figure_value(const struct figure_table *table, const struct figure *f,
                                       const void *values)
{
    size_t slot = (size_t)(f - table->figures) * sizeof(uint64_t);

    return (const char *)values + (f->is_live ? slot : table->view_at + f->offset);
}

/* figure_words(subject): return the words of ${subject}. */
const struct figure_words *figure_words(enum figure_subject subject);

#define FIGURE_METRIC_BYTES 128

/*
 * figure_metric(name, subject, table, figure):
 * Write the name of the metric (see note: names) to ${name}, of FIGURE_METRIC_BYTES. False: the
 * figure has no metric.
 */
bool figure_metric(char *name, enum figure_subject subject, const struct figure_table *table,
                   const struct figure *figure);

#endif
