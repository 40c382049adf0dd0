#include "stats/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stats/history_internal.h"

/* A sample so many ticks late is for all of them; a later one is behind a pause. */
#define HISTORY_LATE_TICKS 3

/* Shown for durations in the last bucket, which has no limit. */
#define HISTORY_LONGEST_US ((double)(1 << HISTOGRAM_BUCKETS))

static const struct history_resolution {
    int64_t step_ns;
    unsigned slots;
} resolutions[HISTORY_LEVELS] = {
    {NS_PER_S, 300}, {10 * NS_PER_S, 360}, {60 * NS_PER_S, 1440}, {600 * NS_PER_S, 1008}};

int64_t history_step_ns(unsigned level)
{
    return resolutions[level].step_ns;
}

unsigned history_slots(unsigned level)
{
    return resolutions[level].slots;
}

/* ---- objects ---- */

/* The object that the visitor shows; a server counts for its upstream. NULL: not kept. */
static struct history_object *history_shown(struct history *h, const struct figure_object *object)
{
    bool is_server = object->subject == FIGURE_SERVER;
    enum figure_subject subject = is_server ? FIGURE_UPSTREAM : object->subject;
    const char *name = is_server ? object->owner : object->name;
    struct history_object *o;

    if (subject != FIGURE_LISTENER && subject != FIGURE_UPSTREAM && subject != FIGURE_LOOP)
        return NULL;
    o = history_find(h, subject, name);
    if (!o) {
        o = history_add(h, subject, name);
        h->lacks |= !o;
    }
    if (o && o->round != h->round) {
        o->round = h->round;
        memset(&o->now, 0, sizeof(o->now));
    }
    if (o)
        h->at = o;
    return o;
}

static void history_visit(struct figure_visitor *v, const struct figure_table *table,
                          const struct figure_object *object, const void *values)
{
    struct history *h = CONTAINER_OF(v, struct history, visitor);
    struct history_object *o;

    lock_take(&h->lock);
    o = h->n_levels > 0 ? history_shown(h, object) : NULL;
    if (o)
        history_pick(h, &o->now, table, object->subject, values);
    lock_release(&h->lock);
}

/* ---- samples ---- */

static uint64_t history_gain(uint64_t now, uint64_t before)
{
    int64_t gain = (int64_t)(now - before); /* `before` may be negative: history_read() */

    return gain > 0 ? (uint64_t)gain : 0; /* less: a server with its counters was removed */
}

/* ${each}: the value for each tick of the sample under way. */
static void history_put(struct history *h, struct history_object *o, unsigned level,
                        enum history_figure figure, double each)
{
    const struct history_level *l = &h->levels[level];
    struct history_ring *ring = &o->levels[level].kept->rings[figure];

    if (!ring->values && (each <= 0 || !history_need_ring(h, ring, level)))
        return;
    for (unsigned i = 0; i < l->filled; i++)
        ring->values[(l->tick - i) % history_slots(level)] = (float)each;
}

/* Bytes that were counted after some rounds without: spread what exceeds those rounds' samples. */
static void history_put_bytes(struct history *h, struct history_object *o, unsigned level,
                              enum history_figure figure, double each)
{
    const struct history_ring *ring = &o->levels[level].kept->rings[figure];
    uint64_t tick = h->levels[level].tick;
    unsigned n = level == 0 ? h->byte_rounds : 1;

    history_put(h, o, level, figure, each);
    if (n <= 1 || !ring->values || tick - n < o->levels[level].first_tick)
        return;
    ring->values[tick % history_slots(level)] = 0;
    for (unsigned i = 0; i < n; i++)
        ring->values[(tick - i) % history_slots(level)] += (float)(each / n);
}

static void history_put_times(struct history *h, struct history_object *o, unsigned level,
                              enum history_figure p50)
{
    static const unsigned permille[] = {500, 990};
    const struct history_counts *before = &o->levels[level].kept->before;
    bool is_connect = p50 == HISTORY_CONNECT_P50;
    const uint64_t *to = is_connect ? o->now.connect : o->now.first_byte;
    const uint64_t *from = is_connect ? before->connect : before->first_byte;
    struct histogram_view gained = {.count = 0};

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        gained.bucket[i] = history_gain(to[i], from[i]);
        gained.count += gained.bucket[i];
    }
    for (unsigned i = 0; i < ARRAY_LEN(permille); i++) {
        int64_t ns = histogram_quantile_ns(&gained, permille[i]);

        history_put(h, o, level, (enum history_figure)(p50 + i),
                    ns == CLOCK_NEVER ? HISTORY_LONGEST_US : (double)ns / NS_PER_US);
    }
}

static void history_put_busy(struct history *h, struct history_object *o, unsigned level,
                             const struct history_counts *before)
{
    struct history_level *l = &h->levels[level];
    double percent = 100.0 * (double)history_gain(o->now.busy_ns, before->busy_ns) * l->scale /
                     (double)history_step_ns(level);

    if (percent > 100)
        percent = 100;
    if (percent > l->busiest)
        l->busiest = percent;
    history_put(h, o, level, HISTORY_BUSY, o == h->whole ? l->busiest : percent);
}

static void history_sample(struct history *h, struct history_object *o, unsigned level)
{
    const struct history_level *l = &h->levels[level];
    struct history_object_level *ol = &o->levels[level];
    const struct history_counts *now = &o->now, *before = &ol->kept->before;

    history_put_busy(h, o, level, before);
    if (o->subject == FIGURE_LOOP)
        return;
    history_put(h, o, level, HISTORY_SESSIONS, (double)ol->most_sessions);
    history_put(h, o, level, HISTORY_NEW,
                (double)history_gain(now->began, before->began) * l->scale);
    history_put_bytes(h, o, level, HISTORY_BYTES_IN,
                      (double)history_gain(now->bytes_in, before->bytes_in) * l->scale);
    history_put_bytes(h, o, level, HISTORY_BYTES_OUT,
                      (double)history_gain(now->bytes_out, before->bytes_out) * l->scale);
    history_put(h, o, level, HISTORY_FAILURES,
                (double)history_gain(now->failures, before->failures) * l->scale);
    history_put_times(h, o, level, HISTORY_CONNECT_P50);
    history_put_times(h, o, level, HISTORY_FIRST_BYTE_P50);
    for (unsigned i = SESSION_OPEN + 1; i < SESSION_REASONS; i++)
        history_put(h, o, level, (enum history_figure)(HISTORY_ENDED + i),
                    (double)history_gain(now->ended[i], before->ended[i]) * l->scale);
}

/* Add what ${o} gained since the last round to the process. */
static void history_add_to_whole(struct history *h, const struct history_object *o)
{
    const struct history_counts *now = &o->now, *before = &o->was;
    struct history_counts *to = &h->whole->now;

    if (o->subject == FIGURE_LISTENER) {
        to->began += history_gain(now->began, before->began);
        to->bytes_in += history_gain(now->bytes_in, before->bytes_in);
        to->bytes_out += history_gain(now->bytes_out, before->bytes_out);
        for (unsigned i = 0; i < SESSION_REASONS; i++)
            to->ended[i] += history_gain(now->ended[i], before->ended[i]);
    } else if (o->subject == FIGURE_UPSTREAM) {
        to->failures += history_gain(now->failures, before->failures);
        for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
            to->connect[i] += history_gain(now->connect[i], before->connect[i]);
            to->first_byte[i] += history_gain(now->first_byte[i], before->first_byte[i]);
        }
    }
}

static void history_take_level(struct history *h, struct history_object *o, unsigned level)
{
    struct history_object_level *ol = &o->levels[level];
    bool is_idle = o != h->whole && ol->most_sessions == 0 && history_counts_are_0(&o->now);
    bool has_memory = (is_idle && !ol->kept) || history_need_kept(h, ol);

    if (!has_memory || !ol->has_before)
        ol->first_tick = h->levels[level].tick + 1;
    else if (ol->kept)
        history_sample(h, o, level);
    if (ol->kept)
        ol->kept->before = o->now;
    ol->has_before = has_memory;
    ol->most_sessions = o->now.sessions;
}

static void history_take(struct history *h, struct history_object *o)
{
    if (o != h->whole && h->levels[0].is_due) {
        if (o->has_was)
            history_add_to_whole(h, o);
        o->was = o->now;
        o->has_was = true;
    }
    for (unsigned level = 0; level < h->n_levels; level++) {
        if (o->now.sessions > o->levels[level].most_sessions)
            o->levels[level].most_sessions = o->now.sessions;
        if (h->levels[level].is_due)
            history_take_level(h, o, level);
    }
}

/* ---- rounds ---- */

/* Find out whether a sample is due, and for which ticks; those of a pause become a gap. */
static void history_turn_level(struct history *h, unsigned level)
{
    struct history_level *l = &h->levels[level];
    uint64_t tick = (uint64_t)(h->now_ns / history_step_ns(level)), late = tick - l->tick;

    l->is_due = tick > l->tick;
    l->busiest = 0;
    if (!l->is_due)
        return;
    if (l->tick == 0 || late > HISTORY_LATE_TICKS || (level > 0 && late > 1)) {
        for (uint64_t i = 0; i < late && i < history_slots(level); i++)
            l->sampled[(tick - i) % history_slots(level)] = false;
        l->filled = 1;
        l->scale = (double)history_step_ns(level) / (double)(h->now_ns - l->at_ns);
    } else {
        l->filled = (unsigned)late;
        l->scale = 1.0 / (double)late;
    }
    l->tick = tick;
    l->at_ns = h->now_ns;
    for (unsigned i = 0; i < l->filled; i++)
        l->sampled[(tick - i) % history_slots(level)] = true;
}

void history_begin(struct history *h, int64_t now_ns, uint64_t sessions, unsigned byte_rounds)
{
    lock_take(&h->lock);
    h->round++;
    h->now_ns = now_ns;
    h->byte_rounds = byte_rounds;
    h->at = NULL;
    h->lacks = false;
    h->whole->round = h->round;
    h->whole->now.sessions = sessions;
    lock_release(&h->lock);
}

struct figure_visitor *history_visitor(struct history *h)
{
    return &h->visitor;
}

void history_end(struct history *h)
{
    struct list *next;

    lock_take(&h->lock);
    for (unsigned level = 0; level < h->n_levels; level++)
        history_turn_level(h, level);
    for (struct list *l = h->objects.next; l != &h->objects; l = next) {
        struct history_object *o = CONTAINER_OF(l, struct history_object, link);

        next = l->next;
        if (o->round != h->round)
            history_drop(h, o);
        else if (o != h->whole)
            history_take(h, o);
    }
    history_take(h, h->whole);
    h->lacked = h->lacks;
    lock_release(&h->lock);
}

void history_keep(struct history *h, int64_t ns)
{
    unsigned n = 0;

    while (n < HISTORY_LEVELS && ns > 0 &&
           (n == 0 || history_step_ns(n - 1) * history_slots(n - 1) < ns))
        n++;
    lock_take(&h->lock);
    for (unsigned level = n; level < h->n_levels; level++) {
        for (struct list *l = h->objects.next; l != &h->objects; l = l->next)
            history_drop_level(h, CONTAINER_OF(l, struct history_object, link), level);
        memset(&h->levels[level], 0, sizeof(h->levels[level]));
    }
    h->n_levels = n;
    h->keep_ns = ns;
    lock_release(&h->lock);
}

bool history_is_short(const struct history *h)
{
    return h->lacked;
}

size_t history_bytes(const struct history *h)
{
    return h->bytes;
}

void history_clear(struct history *h)
{
    history_keep(h, 0);
    list_for_each_safe (node, &h->objects) {
        struct history_object *o = LIST_ENTRY(node, struct history_object, link);

        if (o != h->whole)
            history_drop(h, o);
    }
    memset(&h->whole->now, 0, sizeof(h->whole->now));
}

/* ---- life ---- */

int history_create(struct history **out, size_t max_bytes)
{
    struct history *h = calloc(1, sizeof(*h));

    if (!h)
        return -ENOMEM;
    lock_init(&h->lock);
    list_init(&h->objects);
    h->visitor.visit = history_visit;
    h->max_bytes = max_bytes;
    h->whole = history_add(h, FIGURE_PROCESS, "");
    if (!h->whole) {
        lock_close(&h->lock);
        free(h);
        return -ENOMEM;
    }
    *out = h;
    return 0;
}

void history_destroy(struct history *h)
{
    if (!h)
        return;
    while (!list_empty(&h->objects))
        history_drop(h, CONTAINER_OF(h->objects.next, struct history_object, link));
    lock_close(&h->lock);
    free(h);
}
