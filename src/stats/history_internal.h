/* stats/history_internal: a history's objects and rings, for its own files. */
#ifndef STATS_HISTORY_INTERNAL_H
#define STATS_HISTORY_INTERNAL_H

#include "base/list.h"
#include "engine/histogram.h"
#include "engine/lock.h"
#include "stats/history.h"
#include "stats/session_reason.h"

#define HISTORY_SLOTS_MAX 1440

enum history_figure {
    HISTORY_SESSIONS, /* open at the end of the sample; of longer samples the most */
    HISTORY_NEW,
    HISTORY_BYTES_IN,
    HISTORY_BYTES_OUT,
    HISTORY_FAILURES,
    HISTORY_CONNECT_P50, /* in us, as the four here */
    HISTORY_CONNECT_P99,
    HISTORY_FIRST_BYTE_P50,
    HISTORY_FIRST_BYTE_P99,
    HISTORY_BUSY,  /* of a loop, in percent; of the process: of its busiest loop */
    HISTORY_ENDED, /* and the other reasons behind it */
    HISTORY_FIGURES = HISTORY_ENDED + SESSION_REASONS
};

/* Counters of an object; `sessions` is a gauge. */
struct history_counts {
    uint64_t sessions, began, bytes_in, bytes_out, failures, busy_ns;
    uint64_t ended[SESSION_REASONS];
    uint64_t connect[HISTOGRAM_BUCKETS], first_byte[HISTOGRAM_BUCKETS];
};

/* Numbers are exact up to 2^24; beyond, in 24 bits. */
struct history_ring {
    float *values;  /* by tick; NULL: was always 0 */
    uint64_t since; /* first tick that is kept; 0: all. UINT64_MAX: no memory so far */
};

/* What an object that was ever active has for a level. */
struct history_kept {
    struct history_counts before; /* at the last sample */
    struct history_ring rings[HISTORY_FIGURES];
};

struct history_object {
    struct list link;
    enum figure_subject subject;
    char *name;
    uint64_t round; /* the last that showed it */
    struct history_counts now;
    struct history_counts was; /* when the process last got what this object gained */
    bool has_was;
    struct history_object_level {
        bool has_before;
        uint64_t first_tick;
        uint64_t most_sessions;    /* since the last sample */
        struct history_kept *kept; /* NULL: all is 0 */
    } levels[HISTORY_LEVELS];
};

struct history_level {
    uint64_t tick;                   /* of the last sample: clock_now_ns() / step; 0: none */
    int64_t at_ns;                   /* when it was taken */
    bool sampled[HISTORY_SLOTS_MAX]; /* by tick; false: the process paused */
    /* Of the round under way. */
    bool is_due;
    unsigned filled; /* ticks that the sample is for, at most HISTORY_LATE_TICKS */
    double scale;    /* of what was gained, for each of them */
    double busiest;  /* of the loops */
};

struct history_picks {
    const struct figure_table *table; /* NULL: not used yet */
    signed char pick[32];             /* by row */
};

struct history {
    struct figure_visitor visitor;
    struct lock lock; /* its owner changes the history, while another thread may write it out */
    size_t max_bytes, bytes;
    int64_t keep_ns;
    unsigned n_levels;
    struct history_level levels[HISTORY_LEVELS];
    uint64_t round;
    int64_t now_ns;
    unsigned byte_rounds;
    struct list objects;
    struct history_object *at; /* the last that was shown; NULL: none */
    struct history_object *whole;
    bool lacks, lacked; /* memory, in this round or the last */
    struct history_picks picks[32];
};

/* history_step_ns(level) / history_slots(level): time of a sample / samples in a ring. */
int64_t history_step_ns(unsigned level);
unsigned history_slots(unsigned level);

/* history_find(h, subject, name): return an object; NULL: there is none. */
struct history_object *history_find(const struct history *h, enum figure_subject subject,
                                    const char *name);

/* history_add(h, subject, name): add an object; NULL: there is no memory. */
struct history_object *history_add(struct history *h, enum figure_subject subject,
                                   const char *name);

/* history_drop(h, o) / history_drop_level(h, o, level): free an object / what it has of a level. */
void history_drop(struct history *h, struct history_object *o);
void history_drop_level(struct history *h, struct history_object *o, unsigned level);

/* history_need_kept(h, level): make what an active object needs; false: there is no memory. */
bool history_need_kept(struct history *h, struct history_object_level *level);

/* history_counts_are_0(counts): is all 0? */
bool history_counts_are_0(const struct history_counts *counts);

/* history_need_ring(h, ring, level): make a ring, whose values are 0; false: there is no memory. */
bool history_need_ring(struct history *h, struct history_ring *ring, unsigned level);

/* history_clear(h): forget all samples and objects. */
void history_clear(struct history *h);

#define HISTORY_NAME_BYTES (SESSION_REASON_WORD_BYTES + 8)

/*
 * history_figure_name(buf, figure) / history_subject_name(subject):
 * Return the name of a figure, if need be in HISTORY_NAME_BYTES of ${buf} / of a kind of object.
 */
const char *history_figure_name(char *buf, enum history_figure figure);
const char *history_subject_name(enum figure_subject subject);

/* history_pick(h, counts, table, subject, values): add the figures to ${counts} that are kept. */
void history_pick(struct history *h, struct history_counts *counts,
                  const struct figure_table *table, enum figure_subject subject,
                  const void *values);

#endif
