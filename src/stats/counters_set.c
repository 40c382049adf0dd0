#include "stats/counters_set.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "stats/figure.h"

#define COUNTERS_SET_BEGAN       "sessions_total"
#define COUNTERS_SET_HANDED_OVER "handed_over"
#define COUNTERS_SET_GAVE        "gave"
#define COUNTERS_SET_REPORTED    "reported" /* by others, as open */
#define COUNTERS_SET_TAKEN       "taken"    /* of the reported ones */

/* A uint64_t in decimal, with NUL. */
#define COUNTERS_SET_NUMBER_BYTES 21

void counters_set_add(struct counters_set *set, const char *key, _Atomic uint64_t *counter)
{
    struct counters_set_item *item = &set->items[set->n++];

    MUST(set->n <= COUNTERS_SET_MAX && strlen(key) < sizeof(item->key));
    memcpy(item->key, key, strlen(key) + 1);
    item->counter = counter;
    item->is_told = false;
}

void counters_set_add_table(struct counters_set *set, const struct figure_table *table, void *live)
{
    char key[SESSION_REASON_WORD_BYTES];

    for (const struct figure *f = table->figures; f < table->figures + table->n; f++) {
        if (!f->is_live || f->kind != FIGURE_COUNTER)
            continue;
        MUST(f->type == FIGURE_UINT64);
        snprintf(key, sizeof(key), "%s%s", table->prefix ? table->prefix : "", f->name);
        counters_set_add(set, key, (void *)((char *)live + f->offset));
    }
}

/* Bucket ${i} is the counter `NAME_i`. */
static void counters_set_add_times(struct counters_set *set, const char *name, struct histogram *h)
{
    char key[SESSION_REASON_WORD_BYTES];

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        snprintf(key, sizeof(key), "%s_%u", name, i);
        counters_set_add(set, key, &h->bucket[i]);
    }
}

/* The ends are added last: see note: sums in stats/counters.h. */
void counters_set_add_sessions(struct counters_set *set, struct counters *c)
{
    char word[SESSION_REASON_WORD_BYTES];

    counters_set_add(set, COUNTERS_SET_BEGAN, &c->began);
    counters_set_add(set, "bytes_in", &c->bytes_in);
    counters_set_add(set, "bytes_out", &c->bytes_out);
    counters_set_add(set, "lasted_ns", &c->duration.ns);
    counters_set_add_times(set, "lasted", &c->duration);
    for (unsigned i = SESSION_OPEN + 1; i < SESSION_REASONS; i++)
        counters_set_add(set, session_reason_word(word, (enum session_reason)i), &c->ended[i]);
    counters_set_add(set, COUNTERS_SET_HANDED_OVER, &c->moved);
    counters_set_add(set, COUNTERS_SET_REPORTED, &c->reported);
    counters_set_add(set, COUNTERS_SET_TAKEN, &c->taken);
    for (unsigned i = set->n - 3; i < set->n; i++)
        set->items[i].is_told = true; /* these are not sums over all processes */
}

void counters_set_add_connects(struct counters_set *set, struct counters_connects *c)
{
    counters_set_add(set, "connect_failures", &c->failed);
    counters_set_add(set, "connect_ns", &c->time.ns);
    counters_set_add_times(set, "connects", &c->time);
    counters_set_add(set, "first_byte_ns", &c->first_byte.ns);
    counters_set_add_times(set, "first_byte", &c->first_byte);
}

/*
 * Load with acquire and in reverse order: counters of ended sessions come before those of begun
 * ones (note: sums in stats/counters.h).
 */
void counters_set_write(const struct counters_set *set, FILE *f)
{
    for (unsigned i = set->n; i > 0; i--) {
        const struct counters_set_item *item = &set->items[i - 1];
        uint64_t value = atomic_load_explicit(item->counter, memory_order_acquire);

        if (value > 0)
            fprintf(f, " %s=%" PRIu64, item->key, value);
    }
}

/* Value of ${key} in ${text}; 0: missing, or not a number. */
static uint64_t counters_set_find(const char *text, const char *key)
{
    size_t len = strlen(key);

    for (const char *word = text; word; word = strchr(word, ' ')) {
        char number[COUNTERS_SET_NUMBER_BYTES];
        uint64_t value;
        size_t digits;

        word += strspn(word, " ");
        if (strncmp(word, key, len) != 0 || word[len] != '=')
            continue;
        digits = strcspn(word + len + 1, " ");
        if (digits >= sizeof(number))
            return 0;
        memcpy(number, word + len + 1, digits);
        number[digits] = '\0';
        return parse_uint(&value, number, UINT64_MAX) == 0 ? value : 0;
    }
    return 0;
}

/* Add with release: see note: sums in stats/counters.h. */
static void counters_set_count(_Atomic uint64_t *counter, uint64_t n)
{
    if (n > 0)
        atomic_fetch_add_explicit(counter, n, memory_order_release);
}

void counters_set_continue(const struct counters_set *set, const char *text, const char *before)
{
    for (unsigned i = 0; i < set->n; i++) {
        uint64_t now = counters_set_find(text, set->items[i].key);
        uint64_t was = counters_set_find(before, set->items[i].key);

        if (now > was && !set->items[i].is_told)
            counters_set_count(set->items[i].counter, now - was);
    }
}

/* Sessions that began and have not ended, wherever they are open. */
static uint64_t counters_set_open(const char *text)
{
    uint64_t open = counters_set_find(text, COUNTERS_SET_BEGAN);
    char word[SESSION_REASON_WORD_BYTES];

    for (unsigned i = SESSION_OPEN + 1; i < SESSION_REASONS; i++) {
        uint64_t ended = counters_set_find(text, session_reason_word(word, (enum session_reason)i));

        open -= ended < open ? ended : open;
    }
    return open;
}

/* Sessions that began and have not ended, and that no other process serves. */
static uint64_t counters_set_own(const char *text)
{
    uint64_t own = counters_set_open(text);
    uint64_t handed_over = counters_set_find(text, COUNTERS_SET_HANDED_OVER);
    uint64_t reported = counters_set_find(text, COUNTERS_SET_REPORTED);
    uint64_t taken = counters_set_find(text, COUNTERS_SET_TAKEN);
    uint64_t others = handed_over + (reported > taken ? reported - taken : 0);

    return others < own ? own - others : 0;
}

/* Sessions that this process took, and that ${text} counts as ended all the same, are open. */
static void counters_set_reopen(struct counters *c, const char *text)
{
    uint64_t taken = atomic_load_explicit(&c->taken, memory_order_relaxed);
    uint64_t told = counters_set_find(text, COUNTERS_SET_HANDED_OVER);

    if (counters_set_find(text, COUNTERS_SET_GAVE) == 0 || taken <= told)
        return;
    atomic_fetch_sub_explicit(&c->ended[SESSION_ERROR], taken - told, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->reported, taken - told, memory_order_relaxed);
}

void counters_set_report(const struct counters_set *set, struct counters *c,
                         struct counters_report *report)
{
    static _Atomic uint64_t last;
    const char *before = report->before ? report->before : "";

    if (report->of > 0 && report->of != c->number) {
        report->of = 0;
        return;
    }
    if (c->number == 0)
        c->number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    report->of = c->number;
    counters_set_continue(set, report->text, before);
    atomic_fetch_add_explicit(&c->reported,
                              counters_set_open(report->text) - counters_set_open(before),
                              memory_order_relaxed);
    counters_set_reopen(c, report->text);
}

int counters_set_close_text(char **out, const char *text, bool gave)
{
    uint64_t open = counters_set_own(text);
    char word[SESSION_REASON_WORD_BYTES];

    session_reason_word(word, SESSION_ERROR);
    /* in front of ${text}, because counters_set_find() takes the first match */
    if (asprintf(out, " %s=%" PRIu64 "%s %s", word, open + counters_set_find(text, word),
                 gave ? " " COUNTERS_SET_GAVE "=1" : "", text) < 0)
        return -ENOMEM;
    return 0;
}

void counters_set_merge(const struct counters_set *set, const struct counters_set *from)
{
    MUST(set->n == from->n);
    for (unsigned i = 0; i < set->n; i++)
        counters_set_count(set->items[i].counter,
                           atomic_load_explicit(from->items[i].counter, memory_order_relaxed));
}
