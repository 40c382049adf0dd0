#include "stats/exposition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stats/figure.h"
#include "stats/session_reason.h"

/* Limit of groups; a group is one table of one subject (loop, listener ...). */
#define EXPOSITION_GROUPS 64

/*
 * Objects whose series one call of exposition_write() writes: a histogram takes a few microseconds.
 */
#define EXPOSITION_STEP 16

#define EXPOSITION_FIRST_ENTRIES 8

/* Values of one object: a copy of the table's struct. */
struct exposition_entry {
    size_t labels; /* offset in exposition.labels of `{a="b"`, or of an empty string */
    _Alignas(uint64_t) char values[];
};

/* All objects of one subject that show one table. */
struct exposition_group {
    const struct figure_table *table;
    enum figure_subject subject;
    size_t n, size;
    size_t entry_bytes;
    char *entries;
};

struct exposition {
    struct figure_visitor visitor;
    struct exposition_group groups[EXPOSITION_GROUPS];
    unsigned n;
    bool failed;
    struct text labels;
    struct figure_object last; /* object whose labels were added last */
    size_t last_labels;
    /* The next series: of `figure` in `group`, for the object of `entry`. */
    unsigned group, figure;
    size_t entry;
    char metric[FIGURE_METRIC_BYTES];
};

/* Add ${value}, escaped; bytes that are not UTF-8 become U+FFFD. */
static void exposition_add_label_value(struct text *out, const char *value)
{
    while (*value != '\0') {
        unsigned n = text_character_bytes(value);

        if (n == 0)
            text_puts(out, "\xef\xbf\xbd");
        else if (*value == '\n')
            text_puts(out, "\\n");
        else if (*value == '"' || *value == '\\')
            text_printf(out, "\\%c", *value);
        else
            text_add(out, value, n);
        value += n > 0 ? n : 1;
    }
}

static void exposition_add_label(struct text *out, const char *before, const char *label,
                                 const char *value)
{
    text_printf(out, "%s%s=\"", before, label);
    exposition_add_label_value(out, value);
    text_puts(out, "\"");
}

/*
 * Offset of the object's labels: `{server="a",upstream="b"`. The brace stays open, because a
 * series may add a label.
 */
static size_t exposition_labels(struct exposition *e, const struct figure_object *object)
{
    const struct figure_words *words = figure_words(object->subject);

    if (e->labels.n > 0 && e->last.subject == object->subject && e->last.name == object->name &&
        e->last.owner == object->owner)
        return e->last_labels;
    e->last = *object;
    e->last_labels = e->labels.n;
    if (object->name)
        exposition_add_label(&e->labels, "{", words->label, object->name);
    if (object->owner)
        exposition_add_label(&e->labels, ",", words->owner_label, object->owner);
    text_add(&e->labels, "", 1);
    return e->last_labels;
}

static struct exposition_group *exposition_group(struct exposition *e,
                                                 const struct figure_table *table,
                                                 enum figure_subject subject)
{
    struct exposition_group *g = e->groups;

    for (; g < e->groups + e->n; g++)
        if (g->table == table && g->subject == subject)
            return g;
    MUST(e->n < EXPOSITION_GROUPS);
    e->n++;
    g->table = table;
    g->subject = subject;
    g->entry_bytes = sizeof(struct exposition_entry) +
                     (table->bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
    return g;
}

static struct exposition_entry *exposition_group_at(const struct exposition_group *g, size_t i)
{
    return (struct exposition_entry *)(void *)(g->entries + i * g->entry_bytes);
}

static struct exposition_entry *exposition_group_add(struct exposition_group *g)
{
    if (g->n == g->size) {
        size_t size = g->size > 0 ? 2 * g->size : EXPOSITION_FIRST_ENTRIES;
        char *entries = realloc(g->entries, size * g->entry_bytes);

        if (!entries)
            return NULL;
        g->entries = entries;
        g->size = size;
    }
    return exposition_group_at(g, g->n++);
}

static void exposition_visit(struct figure_visitor *v, const struct figure_table *table,
                             const struct figure_object *object, const void *values)
{
    struct exposition *e = CONTAINER_OF(v, struct exposition, visitor);
    struct exposition_entry *entry =
        exposition_group_add(exposition_group(e, table, object->subject));

    if (!entry) {
        e->failed = true;
        return;
    }
    entry->labels = exposition_labels(e, object);
    memcpy(entry->values, values, table->bytes);
}

int exposition_create(struct exposition **out)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return -ENOMEM;
    (*out)->visitor.visit = exposition_visit;
    return 0;
}

struct figure_visitor *exposition_visitor(struct exposition *e)
{
    return &e->visitor;
}

/* ---- a series ---- */

struct exposition_series {
    struct text *out;
    const char *metric;
    const char *labels;
};

/* Write the sample's name and labels; ${key}: one more label, or NULL. */
static void exposition_name(const struct exposition_series *s, const char *suffix, const char *key,
                            const char *value)
{
    text_puts(s->out, s->metric);
    text_puts(s->out, suffix);
    text_puts(s->out, s->labels);
    if (key)
        exposition_add_label(s->out, s->labels[0] == '\0' ? "{" : ",", key, value);
    text_puts(s->out, key || s->labels[0] != '\0' ? "} " : " ");
}

static void exposition_uint64(const struct exposition_series *s, uint64_t value)
{
    text_printf(s->out, "%" PRIu64 "\n", value);
}

static void exposition_seconds(const struct exposition_series *s, uint64_t ns)
{
    text_printf(s->out, "%" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_S, ns % NS_PER_S);
}

static void exposition_number(const struct exposition_series *s, const struct figure *f,
                              uint64_t value)
{
    exposition_name(s, "", NULL, NULL);
    if (f->unit == FIGURE_PERCENT)
        text_printf(s->out, "%" PRIu64 ".%02" PRIu64 "\n", value / 100, value % 100);
    else if (f->unit == FIGURE_NS)
        exposition_seconds(s, value);
    else
        exposition_uint64(s, value);
}

/*
 * A value may be negative for an instant, because its atomics are not read at once: write 0. Only a
 * gauge of time left may stay negative: the time is over.
 */
static void exposition_int64(const struct exposition_series *s, const struct figure *f,
                             int64_t value)
{
    if (value >= 0 || f->unit != FIGURE_NS || f->kind != FIGURE_GAUGE) {
        exposition_number(s, f, value > 0 ? (uint64_t)value : 0);
        return;
    }
    exposition_name(s, "", NULL, NULL);
    text_puts(s->out, "-");
    exposition_seconds(s, -(uint64_t)value);
}

static void exposition_state(const struct exposition_series *s, const struct figure *f,
                             const char *value)
{
    exposition_name(s, "", f->name, value ? value : "");
    exposition_uint64(s, 1);
}

/*
 * A bucket counts durations below its limit. `le` should also include those equal to the limit,
 * which hardly occur.
 */
static void exposition_times(const struct exposition_series *s, const struct histogram_view *times)
{
    uint64_t seen = 0;
    char le[32];

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        uint64_t us = (uint64_t)histogram_limit_ns(i) / NS_PER_US;

        seen += times->bucket[i];
        if (i % 2 != 0)
            continue;
        snprintf(le, sizeof(le), "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
        exposition_name(s, "_bucket", "le", le);
        exposition_uint64(s, seen);
    }
    exposition_name(s, "_bucket", "le", "+Inf");
    exposition_uint64(s, times->count);
    exposition_name(s, "_sum", NULL, NULL);
    exposition_seconds(s, times->ns);
    exposition_name(s, "_count", NULL, NULL);
    exposition_uint64(s, times->count);
}

static void exposition_ends(const struct exposition_series *s, const uint64_t *ended)
{
    char word[SESSION_REASON_WORD_BYTES];

    for (unsigned i = SESSION_OPEN + 1; i < SESSION_REASONS; i++) {
        exposition_name(s, "", "reason", session_reason_word(word, (enum session_reason)i));
        exposition_uint64(s, ended[i]);
    }
}

static void exposition_figure(const struct exposition_series *s, const struct figure *f,
                              const void *member)
{
    switch (f->type) {
    case FIGURE_BOOL: exposition_number(s, f, *(const bool *)member); break;
    case FIGURE_UNSIGNED: exposition_number(s, f, *(const unsigned *)member); break;
    case FIGURE_UINT64: exposition_number(s, f, *(const uint64_t *)member); break;
    case FIGURE_INT64: exposition_int64(s, f, *(const int64_t *)member); break;
    case FIGURE_STRING: exposition_state(s, f, *(const char *const *)member); break;
    case FIGURE_TIMES: exposition_times(s, member); break;
    case FIGURE_ENDS: exposition_ends(s, member); break;
    case FIGURE_LIST: break;
    }
}

/* ---- all series ---- */

static const char *exposition_type(enum figure_kind kind)
{
    switch (kind) {
    case FIGURE_COUNTER:
    case FIGURE_REASONS: return "counter";
    case FIGURE_HISTOGRAM: return "histogram";
    default: return "gauge";
    }
}

/* Write HELP and TYPE; false: the figure has no metric. */
static bool exposition_begin_metric(struct exposition *e, const struct exposition_group *g,
                                    const struct figure *f, struct text *out)
{
    if (!figure_metric(e->metric, g->subject, g->table, f))
        return false;
    text_printf(out, "# HELP %s %s\n# TYPE %s %s\n", e->metric, f->help, e->metric,
                exposition_type(f->kind));
    return true;
}

static void exposition_next_figure(struct exposition *e)
{
    e->entry = 0;
    if (++e->figure < e->groups[e->group].table->n)
        return;
    e->figure = 0;
    e->group++;
}

static void exposition_write_some(struct exposition *e, struct text *out)
{
    const struct exposition_group *g = &e->groups[e->group];
    const struct figure *f = &g->table->figures[e->figure];

    if (e->entry == 0 && !exposition_begin_metric(e, g, f, out)) {
        exposition_next_figure(e);
        return;
    }
    for (unsigned i = 0; i < EXPOSITION_STEP && e->entry < g->n; i++, e->entry++) {
        const struct exposition_entry *entry = exposition_group_at(g, e->entry);
        const struct exposition_series s = {
            .out = out, .metric = e->metric, .labels = e->labels.bytes + entry->labels};

        exposition_figure(&s, f, figure_value(g->table, f, entry->values));
    }
    if (e->entry == g->n)
        exposition_next_figure(e);
}

int exposition_write(struct exposition *e, struct text *out)
{
    if (e->failed || e->labels.failed)
        return -ENOMEM;
    if (e->group < e->n)
        exposition_write_some(e, out);
    if (out->failed)
        return -ENOMEM;
    return e->group < e->n;
}

void exposition_destroy(struct exposition *e)
{
    if (!e)
        return;
    for (unsigned i = 0; i < e->n; i++)
        free(e->groups[i].entries);
    text_free(&e->labels);
    free(e);
}
