/* stats/history_pick: which figures of the tables a history keeps. */
#include <string.h>

#include "stats/history_internal.h"

enum history_pick {
    PICK_NONE,
    PICK_SESSIONS,
    PICK_BEGAN,
    PICK_BYTES_IN,
    PICK_BYTES_OUT,
    PICK_FAILURES,
    PICK_BUSY,
    PICK_ENDED,
    PICK_CONNECT,
    PICK_FIRST_BYTE
};

static const struct history_pick_name {
    const char *name;
    enum history_pick pick;
    enum figure_type type;
} names[] = {
    {"sessions", PICK_SESSIONS, FIGURE_UINT64},
    {"sessions_total", PICK_BEGAN, FIGURE_UINT64},
    {"bytes_in", PICK_BYTES_IN, FIGURE_UINT64},
    {"bytes_out", PICK_BYTES_OUT, FIGURE_UINT64},
    {"connect_failures", PICK_FAILURES, FIGURE_UINT64},
    {"io_ms", PICK_BUSY, FIGURE_INT64},
    {"task_ms", PICK_BUSY, FIGURE_INT64},
    {"ended", PICK_ENDED, FIGURE_ENDS},
    {"connect_duration", PICK_CONNECT, FIGURE_TIMES},
    {"first_byte_duration", PICK_FIRST_BYTE, FIGURE_TIMES},
};

static enum history_pick history_pick_of(const struct figure *f)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i].name, f->name) == 0 && names[i].type == f->type)
            return names[i].pick;
    return PICK_NONE;
}

/* The picks of ${table}, looked up once; NULL: none of its rows. */
static const struct history_picks *history_picks_of(struct history *h,
                                                    const struct figure_table *table)
{
    for (size_t i = 0; i < ARRAY_LEN(h->picks); i++) {
        struct history_picks *p = &h->picks[i];

        if (p->table == table)
            return p;
        if (p->table)
            continue;
        p->table = table;
        for (unsigned row = 0; row < table->n && row < ARRAY_LEN(p->pick); row++)
            p->pick[row] =
                (signed char)(table->part ? PICK_NONE : history_pick_of(&table->figures[row]));
        return p;
    }
    return NULL;
}

static void history_pick_all(uint64_t *to, const uint64_t *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] += from[i];
}

static void history_pick_one(struct history_counts *c, enum history_pick pick, const void *value)
{
    const uint64_t *number = value;

    switch (pick) {
    case PICK_NONE: break;
    case PICK_SESSIONS: c->sessions = *number; break;
    case PICK_BEGAN: c->began = *number; break;
    case PICK_BYTES_IN: c->bytes_in = *number; break;
    case PICK_BYTES_OUT: c->bytes_out = *number; break;
    case PICK_FAILURES: c->failures += *number; break;
    case PICK_BUSY: c->busy_ns += (uint64_t) * (const int64_t *)value; break;
    case PICK_ENDED: history_pick_all(c->ended, value, SESSION_REASONS); break;
    case PICK_CONNECT:
        history_pick_all(c->connect, ((const struct histogram_view *)value)->bucket,
                         HISTOGRAM_BUCKETS);
        break;
    case PICK_FIRST_BYTE:
        history_pick_all(c->first_byte, ((const struct histogram_view *)value)->bucket,
                         HISTOGRAM_BUCKETS);
        break;
    }
}

void history_pick(struct history *h, struct history_counts *counts,
                  const struct figure_table *table, enum figure_subject subject, const void *values)
{
    const struct history_picks *p = history_picks_of(h, table);

    for (unsigned row = 0; p && row < table->n && row < ARRAY_LEN(p->pick); row++) {
        enum history_pick pick = (enum history_pick)p->pick[row];
        bool is_of_connects =
            pick == PICK_FAILURES || pick == PICK_CONNECT || pick == PICK_FIRST_BYTE;

        /* servers add their connects to their upstream */
        if (pick != PICK_NONE && (subject != FIGURE_SERVER || is_of_connects))
            history_pick_one(counts, pick, figure_value(table, &table->figures[row], values));
    }
}
