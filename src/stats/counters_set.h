/*
 * stats/counters_set: the counters of an object as text, so that a new process can continue them.
 *
 *   old process: counters_set_write() -> " sessions_total=9 client_fin=7"
 *   new process: counters_set_continue() adds what the old process counted since its previous text
 */
#ifndef STATS_COUNTERS_SET_H
#define STATS_COUNTERS_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/must.h"
#include "stats/counters.h"
#include "stats/session_reason.h"

struct figure_table;

#define COUNTERS_SET_MAX (SESSION_REASONS + 3 * HISTOGRAM_BUCKETS + 32)

struct counters_set {
    unsigned n;
    struct counters_set_item {
        char key[SESSION_REASON_WORD_BYTES];
        _Atomic uint64_t *counter;
        bool is_told; /* counters_set_continue() leaves it alone */
    } items[COUNTERS_SET_MAX];
};

/*
 * counters_set_add(set, key, counter):
 * Add ${counter} with the name ${key}.
 *
 * Thread: owner of ${set}
 * Owns:   copies ${key}; ${counter} must outlive ${set}
 */
void counters_set_add(struct counters_set *set, const char *key, _Atomic uint64_t *counter);

/*
 * counters_set_add_table(set, table, live):
 * Add the live counters of ${table}, which are in ${live}, by their names in JSON.
 *
 * Thread: owner of ${set}
 * Owns:   ${live} must outlive ${set}
 */
void counters_set_add_table(struct counters_set *set, const struct figure_table *table, void *live);

/*
 * counters_set_add_sessions(set, c) / counters_set_add_connects(set, c):
 * Add all counters of ${c}.
 *
 * Thread: owner of ${set}
 */
void counters_set_add_sessions(struct counters_set *set, struct counters *c);
void counters_set_add_connects(struct counters_set *set, struct counters_connects *c);

/*
 * counters_set_write(set, f):
 * Write ` KEY=VALUE` for each counter that is not 0. The text never has more ends than begins of
 * sessions.
 */
void counters_set_write(const struct counters_set *set, FILE *f);

/*
 * counters_set_continue(set, text, before):
 * Add to each counter its increase from ${before} to ${text}, two texts that another process wrote
 * one after the other. Unknown keys are ignored.
 */
void counters_set_continue(const struct counters_set *set, const char *text, const char *before);

/* What another process reports of an object. */
struct counters_report {
    const char *text;
    const char *before; /* NULL: nothing yet */
    uint64_t of;        /* number of the counters that have ${before}; 0: any */
};

/*
 * counters_set_report(set, c, report):
 * As counters_set_continue(), and set ${report}->of to the number of ${c}, the counters of sessions
 * in ${set}. If ${before} is in others, of a removed object with the same name, add nothing and set
 * 0: sessions that began there must not end in ${c}.
 *
 * Thread: control loop, or main before start
 */
void counters_set_report(const struct counters_set *set, struct counters *c,
                         struct counters_report *report);

/*
 * counters_set_close_text(out, text, gave):
 * Copy ${text} of a killed process, with its open sessions counted as ended with SESSION_ERROR, but
 * not those that it has handed over, or that processes before it serve. ${gave}: to this process,
 * which may have taken more of them than ${text} tells.
 *
 * Owns:   the caller frees ${out}
 * Errors: 0; -ENOMEM
 */
int counters_set_close_text(char **out, const char *text, bool gave) NODISCARD;

/*
 * counters_set_merge(set, from):
 * Add the values of ${from}, a set with the same keys in the same order.
 *
 * Thread: any, while no thread writes ${from}
 */
void counters_set_merge(const struct counters_set *set, const struct counters_set *from);

#endif
