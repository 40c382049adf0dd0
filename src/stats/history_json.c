/* stats/history_json: a history as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "stats/figure_json.h"
#include "stats/history_internal.h"

static const struct history_json_row {
    const char *name;
    bool is_duration; /* kept in us, shown in ms; 0 means none */
} rows[HISTORY_ENDED] = {
    [HISTORY_SESSIONS] = {"sessions", false},
    [HISTORY_NEW] = {"new_sessions", false},
    [HISTORY_BYTES_IN] = {"bytes_in", false},
    [HISTORY_BYTES_OUT] = {"bytes_out", false},
    [HISTORY_FAILURES] = {"connect_failures", false},
    [HISTORY_CONNECT_P50] = {"connect_p50_ms", true},
    [HISTORY_CONNECT_P99] = {"connect_p99_ms", true},
    [HISTORY_FIRST_BYTE_P50] = {"first_byte_p50_ms", true},
    [HISTORY_FIRST_BYTE_P99] = {"first_byte_p99_ms", true},
    [HISTORY_BUSY] = {"busy_percent", false},
};

static const char *const subjects[] = {[FIGURE_PROCESS] = "process",
                                       [FIGURE_LISTENER] = "listener",
                                       [FIGURE_UPSTREAM] = "upstream",
                                       [FIGURE_LOOP] = "loop"};

const char *history_figure_name(char *buf, enum history_figure figure)
{
    char word[SESSION_REASON_WORD_BYTES];

    if (figure < HISTORY_ENDED)
        return rows[figure].name;
    snprintf(buf, HISTORY_NAME_BYTES, "ended:%s",
             session_reason_word(word, (enum session_reason)(figure - HISTORY_ENDED)));
    return buf;
}

const char *history_subject_name(enum figure_subject subject)
{
    return subjects[subject];
}

/* Which samples are shown: ticks from `first` to `last`. */
struct history_json_span {
    unsigned level;
    uint64_t first, last;
};

static bool history_json_has(const struct history *h, const struct history_object *o,
                             const struct history_ring *ring, unsigned level, uint64_t tick)
{
    return h->levels[level].sampled[tick % history_slots(level)] &&
           tick >= o->levels[level].first_tick && tick >= ring->since;
}

static const struct history_ring *history_json_ring(const struct history_object *o, unsigned level,
                                                    enum history_figure figure)
{
    static const struct history_ring none;
    const struct history_kept *kept = o->levels[level].kept;

    return kept ? &kept->rings[figure] : &none;
}

static void history_json_values(const struct history *h, const struct history_object *o,
                                const struct history_json_span *span, enum history_figure figure,
                                struct text *out)
{
    const struct history_ring *ring = history_json_ring(o, span->level, figure);
    bool is_duration = figure < HISTORY_ENDED && rows[figure].is_duration;

    text_puts(out, "[");
    for (uint64_t tick = span->first; tick <= span->last; tick++) {
        double value = ring->values ? (double)ring->values[tick % history_slots(span->level)] : 0;

        text_puts(out, tick > span->first ? "," : "");
        if (!history_json_has(h, o, ring, span->level, tick) || (is_duration && value <= 0))
            text_puts(out, "null");
        else if (value <= 0)
            text_puts(out, "0");
        else
            text_printf(out, "%.7g", is_duration ? value / 1000 : value);
    }
    text_puts(out, "]");
}

static bool history_json_is_of(enum history_figure figure, enum figure_subject subject)
{
    if (figure == HISTORY_BUSY)
        return subject == FIGURE_LOOP || subject == FIGURE_PROCESS;
    if (figure >= HISTORY_FAILURES && figure <= HISTORY_FIRST_BYTE_P99)
        return subject == FIGURE_UPSTREAM || subject == FIGURE_PROCESS;
    return subject != FIGURE_LOOP;
}

static void history_json_ended(const struct history *h, const struct history_object *o,
                               const struct history_json_span *span, struct text *out)
{
    char word[SESSION_REASON_WORD_BYTES];
    bool is_first = true;

    text_puts(out, ",\"ended\":{");
    for (unsigned i = SESSION_OPEN + 1; i < SESSION_REASONS; i++) {
        enum history_figure figure = (enum history_figure)(HISTORY_ENDED + i);
        const struct history_ring *ring = history_json_ring(o, span->level, figure);

        if (!ring->values && ring->since == 0)
            continue;
        text_printf(out, "%s\"%s\":", is_first ? "" : ",",
                    session_reason_word(word, (enum session_reason)i));
        is_first = false;
        history_json_values(h, o, span, figure, out);
    }
    text_puts(out, "}");
}

static uint64_t history_json_samples(const struct history *h, unsigned level)
{
    uint64_t wanted = (uint64_t)(h->keep_ns / history_step_ns(level));

    return wanted > 0 && wanted < history_slots(level) ? wanted : history_slots(level);
}

static void history_json_head(const struct history *h, struct text *out)
{
    text_printf(out, "\"kept_s\":%" PRId64 ",\"complete\":%s,\"steps_s\":[", h->keep_ns / NS_PER_S,
                h->lacked ? "false" : "true");
    for (unsigned level = 0; level < h->n_levels; level++)
        text_printf(out, "%s%" PRId64, level > 0 ? "," : "", history_step_ns(level) / NS_PER_S);
    text_puts(out, "]");
}

bool history_json(const struct history *h, const struct history_query *query, int64_t now_ns,
                  struct text *out)
{
    const struct history_object *o =
        history_find(h, query->subject, query->name ? query->name : "");
    const struct history_level *l = &h->levels[query->level];
    struct history_json_span span = {
        .level = query->level, .first = query->after + 1, .last = l->tick};
    uint64_t n = history_json_samples(h, query->level);

    if (!o)
        return false;
    if (query->after > l->tick || l->tick - query->after > n)
        span.first = l->tick >= n ? l->tick - n + 1 : 1;
    if (!o->levels[query->level].has_before)
        span.first = l->tick + 1;
    else if (span.first < o->levels[query->level].first_tick)
        span.first = o->levels[query->level].first_tick;
    history_json_head(h, out);
    text_printf(out, ",\"step_s\":%" PRId64 ",\"last\":%" PRIu64 ",\"age_s\":%.3f",
                history_step_ns(query->level) / NS_PER_S, l->tick,
                (double)(now_ns - l->at_ns) / NS_PER_S);
    for (unsigned i = 0; i < HISTORY_ENDED; i++) {
        if (!history_json_is_of((enum history_figure)i, o->subject))
            continue;
        text_printf(out, ",\"%s\":", rows[i].name);
        history_json_values(h, o, &span, (enum history_figure)i, out);
    }
    if (o->subject != FIGURE_LOOP)
        history_json_ended(h, o, &span, out);
    return true;
}

void history_json_objects(const struct history *h, struct text *out)
{
    bool is_first = true;

    history_json_head(h, out);
    text_puts(out, ",\"objects\":[");
    for (const struct list *l = h->objects.next; l != &h->objects; l = l->next) {
        const struct history_object *o = CONTAINER_OF(l, struct history_object, link);

        text_printf(out, "%s{\"kind\":\"%s\",\"name\":", is_first ? "" : ",", subjects[o->subject]);
        is_first = false;
        figure_json_string(out, o->name);
        text_puts(out, "}");
    }
    text_puts(out, "]");
}

int history_level(const struct history *h, unsigned step_s)
{
    for (unsigned level = 0; level < h->n_levels; level++)
        if (history_step_ns(level) == step_s * NS_PER_S)
            return (int)level;
    return -1;
}
