#include "limits/prefix_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "net/address.h"
#include "net/cidr.h"

__extension__ typedef unsigned __int128 number;

struct span {
    number first, last;
    uint32_t rule;
};

/* Nested prefixes differ in length, 0 to 128; equal prefixes count once. */
#define MAX_DEPTH (8 * 16 + 1)

/*
 * note: steps. A binary search of 200,000 starts misses the cache in most of its 18 steps, so a
 * small array, which stays cached, repeats every 16th start.
 */
#define STEP 16

/* Interval i starts at begin[i]; rule[i] is its first matching prefix. begin[0] is 0. */
struct intervals {
    number *begin;
    uint32_t *rule;
    size_t n;
    number *steps; /* begin[0], begin[STEP], ...; see note: steps */
    size_t n_steps;
};

struct prefix_table {
    struct intervals ip4, ip6;
    uint32_t unix_rule;
};

static number prefix_table_number_of(const void *host, size_t len)
{
    const uint8_t *bytes = host;
    number x = 0;

    for (size_t i = 0; i < len; i++)
        x = x << 8 | bytes[i];
    return x;
}

static struct span prefix_table_span_of(const struct cidr *p, uint32_t rule)
{
    unsigned rest = 8U * p->len - p->bits;
    number host = rest == 0 ? 0 : ~(number)0 >> (128 - rest);
    number first = prefix_table_number_of(p->host, p->len) & ~host;

    return (struct span){.first = first, .last = first | host, .rule = rule};
}

/* Order: outer before inner; equal prefixes by rule number. */
static int prefix_table_span_compare(const void *va, const void *vb)
{
    const struct span *a = va, *b = vb;

    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (a->last != b->last)
        return a->last > b->last ? -1 : 1;
    return a->rule < b->rule ? -1 : 1;
}

static int prefix_table_spans_create(struct span **out, size_t *n_out, const struct cidr *list,
                                     size_t n, size_t len)
{
    struct span *spans = malloc((n > 0 ? n : 1) * sizeof(*spans));
    size_t found = 0;

    if (!spans)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (list[i].len == len)
            spans[found++] = prefix_table_span_of(&list[i], (uint32_t)i);
    qsort(spans, found, sizeof(*spans), prefix_table_span_compare);
    *out = spans;
    *n_out = found;
    return 0;
}

static void prefix_table_intervals_put(struct intervals *v, number begin, uint32_t rule)
{
    if (v->n > 0 && v->begin[v->n - 1] == begin)
        v->n--;
    if (v->n > 0 && v->rule[v->n - 1] == rule)
        return;
    v->begin[v->n] = begin;
    v->rule[v->n] = rule;
    v->n++;
}

/*
 * Stack of the spans that contain the current one, outermost first. open[i].rule is the lowest rule
 * of open[0] to open[i].
 */
struct walk {
    struct span open[MAX_DEPTH];
    unsigned depth;
    struct intervals *out;
};

static uint32_t prefix_table_walk_rule(const struct walk *w)
{
    return w->depth > 0 ? w->open[w->depth - 1].rule : PREFIX_TABLE_NONE;
}

static void prefix_table_walk_close(struct walk *w, number end)
{
    w->depth--;
    if (w->out && end + 1 > end) /* false behind the last IPv6 address: the sum overflows */
        prefix_table_intervals_put(w->out, end + 1, prefix_table_walk_rule(w));
}

static void prefix_table_walk_spans(struct walk *w, const struct span *spans, size_t n,
                                    uint32_t *by)
{
    for (size_t i = 0; i < n; i++) {
        struct span s = spans[i];

        while (w->depth > 0 && w->open[w->depth - 1].last < s.first)
            prefix_table_walk_close(w, w->open[w->depth - 1].last);
        if (prefix_table_walk_rule(w) < s.rule)
            s.rule = prefix_table_walk_rule(w);
        if (by)
            by[spans[i].rule] = s.rule;
        if (w->depth > 0 && w->open[w->depth - 1].first == s.first &&
            w->open[w->depth - 1].last == s.last)
            continue; /* equal prefix, already open */
        MUST(w->depth < MAX_DEPTH);
        w->open[w->depth++] = s;
        if (w->out)
            prefix_table_intervals_put(w->out, s.first, s.rule);
    }
    while (w->depth > 0)
        prefix_table_walk_close(w, w->open[w->depth - 1].last);
}

static void prefix_table_intervals_destroy(struct intervals *v)
{
    free(v->begin);
    free(v->rule);
    free(v->steps);
}

/* Shrink the arrays. If realloc(3) fails, the larger ones stay. */
static void prefix_table_intervals_trim(struct intervals *v)
{
    number *begin = realloc(v->begin, v->n * sizeof(*begin));
    uint32_t *rule;

    if (begin)
        v->begin = begin;
    rule = realloc(v->rule, v->n * sizeof(*rule));
    if (rule)
        v->rule = rule;
}

static int prefix_table_intervals_put_steps(struct intervals *v)
{
    v->n_steps = (v->n + STEP - 1) / STEP;
    v->steps = malloc(v->n_steps * sizeof(*v->steps));
    if (!v->steps)
        return -ENOMEM;
    for (size_t i = 0; i < v->n_steps; i++)
        v->steps[i] = v->begin[i * STEP];
    return 0;
}

/* On error the caller still destroys ${v}. */
static int prefix_table_intervals_create(struct intervals *v, const struct cidr *list, size_t n,
                                         size_t len)
{
    struct walk w = {.out = v};
    struct span *spans;
    size_t n_spans;
    int rc = prefix_table_spans_create(&spans, &n_spans, list, n, len);

    if (rc < 0)
        return rc;
    /* At most one interval begins at 0, at each span and behind each span. */
    v->begin = malloc((2 * n_spans + 1) * sizeof(*v->begin));
    v->rule = malloc((2 * n_spans + 1) * sizeof(*v->rule));
    if (!v->begin || !v->rule) {
        free(spans);
        return -ENOMEM;
    }
    prefix_table_intervals_put(v, 0, PREFIX_TABLE_NONE);
    prefix_table_walk_spans(&w, spans, n_spans, NULL);
    free(spans);
    prefix_table_intervals_trim(v);
    return prefix_table_intervals_put_steps(v);
}

static uint32_t prefix_table_first_unix(const struct cidr *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].len == 0)
            return (uint32_t)i;
    return PREFIX_TABLE_NONE;
}

int prefix_table_create(struct prefix_table **out, const struct cidr *list, size_t n)
{
    struct prefix_table *t = calloc(1, sizeof(*t));
    int rc;

    MUST(n < PREFIX_TABLE_NONE);
    if (!t)
        return -ENOMEM;
    t->unix_rule = prefix_table_first_unix(list, n);
    rc = prefix_table_intervals_create(&t->ip4, list, n, 4);
    if (rc == 0)
        rc = prefix_table_intervals_create(&t->ip6, list, n, 16);
    if (rc < 0) {
        prefix_table_destroy(t);
        return rc;
    }
    *out = t;
    return 0;
}

int prefix_table_covers(uint32_t *by, const struct cidr *list, size_t n)
{
    static const size_t lengths[] = {4, 16};

    uint32_t unix_rule = prefix_table_first_unix(list, n);

    MUST(n < PREFIX_TABLE_NONE);
    for (size_t i = 0; i < n; i++)
        if (list[i].len == 0)
            by[i] = unix_rule;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct walk w = {.out = NULL};
        struct span *spans;
        size_t n_spans;
        int rc = prefix_table_spans_create(&spans, &n_spans, list, n, lengths[i]);

        if (rc < 0)
            return rc;
        prefix_table_walk_spans(&w, spans, n_spans, by);
        free(spans);
    }
    return 0;
}

void prefix_table_destroy(struct prefix_table *t)
{
    if (!t)
        return;
    prefix_table_intervals_destroy(&t->ip4);
    prefix_table_intervals_destroy(&t->ip6);
    free(t);
}

/*
 * Index of the last number <= ${x}; list[0] must not be above ${x}. The number of iterations
 * depends on ${n} alone: no mispredicted branches.
 */
static size_t prefix_table_last_not_above(const number *list, size_t n, number x)
{
    size_t low = 0;

    while (n > 1) {
        size_t half = n / 2;

        low = list[low + half] <= x ? low + half : low;
        n -= half;
    }
    return low;
}

static uint32_t prefix_table_intervals_find(const struct intervals *v, number x)
{
    size_t first = prefix_table_last_not_above(v->steps, v->n_steps, x) * STEP;
    size_t n = v->n - first < STEP ? v->n - first : STEP;

    return v->rule[first + prefix_table_last_not_above(v->begin + first, n, x)];
}

uint32_t prefix_table_find(const struct prefix_table *t, const struct address *a)
{
    size_t len;
    const void *host = address_host(a, &len);

    if (!host)
        return t->unix_rule;
    return prefix_table_intervals_find(len == 4 ? &t->ip4 : &t->ip6,
                                       prefix_table_number_of(host, len));
}
