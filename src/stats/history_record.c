/*
 * stats/history_record: a history as bytes, for the process that replaces this one.
 *
 *   history 1 KEEP_NS
 *   level STEP_NS TICK AT_NS N                         then N bytes: was a sample taken, by tick
 *   object KIND NAME
 *   before STEP_NS FIRST_TICK MOST_SESSIONS KEY=VALUE ...
 *   ring STEP_NS FIGURE SINCE N                        then N values of 4 bytes, by tick
 *   now KEY=VALUE ...                                  of the process, which no table has
 *   end
 *
 * Bytes and values end with those of the level's last tick, and a newline follows them. A level of
 * another length, an unknown figure or counter, or one more word at the end is no error: another
 * version has written it.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "stats/history_internal.h"

enum history_record_counter {
    RECORD_BEGAN,
    RECORD_BYTES_IN,
    RECORD_BYTES_OUT,
    RECORD_FAILURES,
    RECORD_BUSY,
    RECORD_ENDED,
    RECORD_CONNECT = RECORD_ENDED + SESSION_REASONS,
    RECORD_FIRST_BYTE = RECORD_CONNECT + HISTOGRAM_BUCKETS,
    RECORD_COUNTERS = RECORD_FIRST_BYTE + HISTOGRAM_BUCKETS
};

/* The counter ${i} of ${c}, and its key in ${key}, of HISTORY_NAME_BYTES. */
static uint64_t *history_record_counter(struct history_counts *c, unsigned i, char *key)
{
    static const char *const keys[] = {"began", "bytes_in", "bytes_out", "failures", "busy_ns"};
    uint64_t *const counters[] = {&c->began, &c->bytes_in, &c->bytes_out, &c->failures,
                                  &c->busy_ns};

    if (i >= RECORD_FIRST_BYTE) {
        snprintf(key, HISTORY_NAME_BYTES, "first_byte:%u", i - RECORD_FIRST_BYTE);
        return &c->first_byte[i - RECORD_FIRST_BYTE];
    }
    if (i >= RECORD_CONNECT) {
        snprintf(key, HISTORY_NAME_BYTES, "connect:%u", i - RECORD_CONNECT);
        return &c->connect[i - RECORD_CONNECT];
    }
    if (i >= RECORD_ENDED) {
        (void)history_figure_name(key, (enum history_figure)(HISTORY_ENDED + i - RECORD_ENDED));
        return &c->ended[i - RECORD_ENDED];
    }
    snprintf(key, HISTORY_NAME_BYTES, "%s", keys[i]);
    return counters[i];
}

/* ---- writing ---- */

static void history_record_write_counts(const struct history_counts *counts, FILE *f)
{
    struct history_counts c = *counts;
    char key[HISTORY_NAME_BYTES];

    for (unsigned i = 0; i < RECORD_COUNTERS; i++) {
        const uint64_t *counter = history_record_counter(&c, i, key);

        if (*counter > 0)
            fprintf(f, " %s=%" PRIu64, key, *counter);
    }
    putc('\n', f);
}

static void history_record_write_level(const struct history *h, unsigned level, FILE *f)
{
    const struct history_level *l = &h->levels[level];
    unsigned n = history_slots(level);

    fprintf(f, "level %" PRId64 " %" PRIu64 " %" PRId64 " %u\n", history_step_ns(level), l->tick,
            l->at_ns, n);
    for (unsigned i = 0; i < n; i++)
        putc(l->sampled[(l->tick + 1 + i) % n], f);
    putc('\n', f);
}

static void history_record_write_ring(const struct history *h, const struct history_ring *ring,
                                      unsigned level, const char *figure, FILE *f)
{
    unsigned n = history_slots(level);
    unsigned next = (unsigned)((h->levels[level].tick + 1) % n);

    if (!ring->values && ring->since == 0)
        return;
    fprintf(f, "ring %" PRId64 " %s %" PRIu64 " %u\n", history_step_ns(level), figure, ring->since,
            ring->values ? n : 0);
    if (ring->values) {
        fwrite(ring->values + next, sizeof(float), n - next, f);
        fwrite(ring->values, sizeof(float), next, f);
    }
    putc('\n', f);
}

static void history_record_write_object(const struct history *h, const struct history_object *o,
                                        FILE *f)
{
    char name[HISTORY_NAME_BYTES];

    fprintf(f, "object %s %s\n", history_subject_name(o->subject), o->name);
    for (unsigned level = 0; level < h->n_levels; level++) {
        const struct history_object_level *l = &o->levels[level];
        struct history_counts before = {.sessions = 0};

        if (!l->has_before)
            continue;
        if (l->kept)
            before = l->kept->before;
        /* the new process counts the time of its loops anew: what was gained so far */
        before.busy_ns = o->now.busy_ns > before.busy_ns ? o->now.busy_ns - before.busy_ns : 0;
        fprintf(f, "before %" PRId64 " %" PRIu64 " %" PRIu64, history_step_ns(level), l->first_tick,
                l->most_sessions);
        history_record_write_counts(&before, f);
        for (unsigned i = 0; l->kept && i < HISTORY_FIGURES; i++)
            history_record_write_ring(h, &l->kept->rings[i], level,
                                      history_figure_name(name, (enum history_figure)i), f);
    }
}

void history_write(struct history *h, FILE *f)
{
    lock_take(&h->lock);
    fprintf(f, "history 1 %" PRId64 "\n", h->keep_ns);
    for (unsigned level = 0; level < h->n_levels; level++)
        history_record_write_level(h, level, f);
    list_for_each (node, &h->objects)
        history_record_write_object(h, LIST_ENTRY(node, struct history_object, link), f);
    fputs("object process \nnow", f);
    history_record_write_counts(&h->whole->now, f);
    fputs("end\n", f);
    lock_release(&h->lock);
}

/* ---- reading ---- */

struct history_record {
    struct history *h;
    char *at, *end;
    int64_t now_ns;
    struct history_object *object; /* NULL: none yet */
    unsigned figure, counter;      /* where names are looked up first */
    bool lacks;                    /* memory */
};

/* Cut the next line off, without its newline; NULL: there is none. */
static char *history_record_line(struct history_record *r)
{
    char *line = r->at, *end = memchr(r->at, '\n', (size_t)(r->end - r->at));

    if (!end)
        return NULL;
    *end = '\0';
    r->at = end + 1;
    return line;
}

/* The ${n} bytes behind the line, and their newline; NULL: they are not all there. */
static const char *history_record_bytes(struct history_record *r, size_t n)
{
    const char *bytes = r->at;

    if ((size_t)(r->end - r->at) <= n || bytes[n] != '\n')
        return NULL;
    r->at += n + 1;
    return bytes;
}

/* The level with samples of ${step_ns}; HISTORY_LEVELS: none. */
static unsigned history_record_level(int64_t step_ns)
{
    unsigned level = 0;

    while (level < HISTORY_LEVELS && history_step_ns(level) != step_ns)
        level++;
    return level;
}

static bool history_record_read_level(struct history_record *r, const char *line)
{
    struct history_level read = {.is_due = false};
    const char *sampled;
    int64_t step_ns;
    unsigned n, level, slots;

    if (sscanf(line, "level %" SCNd64 " %" SCNu64 " %" SCNd64 " %u", &step_ns, &read.tick,
               &read.at_ns, &n) != 4 ||
        step_ns <= 0 || n == 0)
        return false;
    sampled = history_record_bytes(r, n);
    level = history_record_level(step_ns);
    if (!sampled || level == HISTORY_LEVELS)
        return sampled != NULL;
    if (level != r->h->n_levels || read.at_ns > r->now_ns ||
        read.tick != (uint64_t)(read.at_ns / step_ns))
        return false;
    slots = history_slots(level);
    for (unsigned i = 0; i < n && i < slots; i++)
        read.sampled[(read.tick + slots - i) % slots] = sampled[n - 1 - i] != 0;
    r->h->levels[level] = read;
    r->h->n_levels++;
    return true;
}

static bool history_record_read_object(struct history_record *r, const char *line)
{
    static const enum figure_subject subjects[] = {FIGURE_LISTENER, FIGURE_UPSTREAM, FIGURE_LOOP};
    char kind[16];
    int at = 0;

    if (sscanf(line, "object %15s%n", kind, &at) != 1 || line[at] != ' ')
        return false;
    r->object = NULL;
    if (strcmp(kind, history_subject_name(FIGURE_PROCESS)) == 0)
        r->object = r->h->whole;
    for (unsigned i = 0; i < ARRAY_LEN(subjects); i++)
        if (strcmp(kind, history_subject_name(subjects[i])) == 0) {
            r->object = history_add(r->h, subjects[i], line + at + 1);
            r->lacks |= !r->object;
        }
    return true;
}

/* Read KEY=VALUE ...; false: they are wrong. */
static bool history_record_read_counts(struct history_record *r, struct history_counts *out,
                                       char *text)
{
    char *word, *value, *end, key[HISTORY_NAME_BYTES];

    while ((word = strsep(&text, " "))) {
        uint64_t number;

        if (*word == '\0')
            continue;
        value = strchr(word, '=');
        if (!value)
            return false;
        *value++ = '\0';
        number = strtoull(value, &end, 10);
        if (end == value || *end != '\0')
            return false;
        for (unsigned i = 0; i < RECORD_COUNTERS; i++, r->counter++) {
            uint64_t *counter = history_record_counter(out, r->counter % RECORD_COUNTERS, key);

            if (strcmp(key, word) != 0)
                continue;
            *counter = number;
            break;
        }
    }
    return true;
}

static bool history_record_read_before(struct history_record *r, char *line)
{
    struct history_object_level read = {.has_before = true};
    struct history_counts before = {.sessions = 0};
    struct history_object *o = r->object;
    int64_t step_ns;
    unsigned level;
    int at = 0;

    if (sscanf(line, "before %" SCNd64 " %" SCNu64 " %" SCNu64 "%n", &step_ns, &read.first_tick,
               &read.most_sessions, &at) != 3 ||
        !history_record_read_counts(r, &before, line + at))
        return false;
    level = history_record_level(step_ns);
    if (!o || level >= r->h->n_levels)
        return true;
    if (o->levels[level].has_before || o->levels[level].kept)
        return false;
    before.busy_ns = 0 - before.busy_ns;
    if (level == 0) {
        o->was = before;
        o->has_was = true;
    }
    if (!history_counts_are_0(&before)) {
        if (!history_need_kept(r->h, &read))
            return true;
        read.kept->before = before;
    }
    o->levels[level] = read;
    return true;
}

/* The figure called ${name}; HISTORY_FIGURES: none. Names come in order. */
static unsigned history_record_figure(struct history_record *r, const char *name)
{
    char buf[HISTORY_NAME_BYTES];

    for (unsigned i = 0; i < HISTORY_FIGURES; i++, r->figure++) {
        unsigned figure = r->figure % HISTORY_FIGURES;

        if (strcmp(history_figure_name(buf, (enum history_figure)figure), name) == 0)
            return figure;
    }
    return HISTORY_FIGURES;
}

static bool history_record_use_values(struct history_ring *ring, unsigned level, uint64_t tick,
                                      const char *values, unsigned n)
{
    unsigned slots = history_slots(level);

    for (unsigned i = 0; i < n && i < slots; i++) {
        float value;

        memcpy(&value, values + (n - 1 - i) * sizeof(float), sizeof(value));
        if (!isfinite(value) || value < 0)
            return false;
        ring->values[(tick + slots - i) % slots] = value;
    }
    return true;
}

static bool history_record_read_ring(struct history_record *r, const char *line)
{
    char name[HISTORY_NAME_BYTES];
    struct history_ring *ring;
    const char *values;
    int64_t step_ns;
    uint64_t since;
    unsigned n, level, figure;

    _Static_assert(HISTORY_NAME_BYTES == 40, "the width of %39s");
    if (sscanf(line, "ring %" SCNd64 " %39s %" SCNu64 " %u", &step_ns, name, &since, &n) != 4)
        return false;
    values = history_record_bytes(r, (size_t)n * sizeof(float));
    level = history_record_level(step_ns);
    figure = history_record_figure(r, name);
    if (!values || !r->object || level >= r->h->n_levels || figure == HISTORY_FIGURES)
        return values != NULL;
    if (!history_need_kept(r->h, &r->object->levels[level]))
        return true;
    ring = &r->object->levels[level].kept->rings[figure];
    if (ring->values)
        return false;
    if (n > 0 && !history_need_ring(r->h, ring, level))
        return true;
    ring->since = since;
    return n == 0 || history_record_use_values(ring, level, r->h->levels[level].tick, values, n);
}

/* Read the line and what is behind it; false: they are wrong. */
static bool history_record_read(struct history_record *r, char *line)
{
    if (strncmp(line, "level ", 6) == 0)
        return history_record_read_level(r, line);
    if (strncmp(line, "object ", 7) == 0)
        return history_record_read_object(r, line);
    if (strncmp(line, "before ", 7) == 0)
        return history_record_read_before(r, line);
    if (strncmp(line, "ring ", 5) == 0)
        return history_record_read_ring(r, line);
    if (strncmp(line, "now", 3) == 0)
        return r->object == r->h->whole && history_record_read_counts(r, &r->object->now, line + 3);
    return false;
}

int history_read(struct history *h, char *record, size_t n, int64_t now_ns)
{
    struct history_record r = {.h = h, .at = record, .end = record + n, .now_ns = now_ns};
    char *line = history_record_line(&r);
    bool is_right = line && sscanf(line, "history 1 %" SCNd64, &h->keep_ns) == 1;

    while (is_right) {
        line = history_record_line(&r);
        if (line && strcmp(line, "end") == 0)
            break;
        is_right = line && history_record_read(&r, line) && !r.lacks;
    }
    if (is_right)
        return 0;
    history_clear(h);
    return r.lacks ? -ENOMEM : -EINVAL;
}
