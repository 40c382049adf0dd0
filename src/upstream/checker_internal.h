/*
 * upstream/checker_internal: shared by checker.c, checker_turn.c and checker_run.c.
 *
 * note: turns. A group's due targets wait in its queue; checker.share limits its checks under way.
 * Groups below the limit take turns, one check each: servers that hold slots until timeout delay
 * only their group.
 */
#ifndef UPSTREAM_CHECKER_INTERNAL_H
#define UPSTREAM_CHECKER_INTERNAL_H

#include "base/list.h"
#include "base/log.h"
#include "upstream/checker.h"

struct checker_slot {
    struct check check;
    struct list link;
    struct checker *checker;
    struct checker_target *target; /* of the check under way; NULL: removed */
    bool as_sessions;              /* checks where sessions connect */
    struct address addresses[ENDPOINT_ADDRESSES];
};

struct checker_target {
    struct timer timer;
    struct list link;
    struct list waiting; /* queue of the group */
    struct checker_group *group;
    struct checker_slot *slot; /* NULL: no check under way */
    struct checker_target_conf conf;
    struct health health;
    struct checker_stats stats;
    int64_t due_at_ns;
    int64_t first_ns; /* offset in the interval, spreads targets */
    bool warming;
    bool was_up;
    bool is_used; /* counted in the group's n_used */
    bool is_up;   /* counted in n_up */
    bool has_no_address;
};

struct checker_group {
    struct list link;
    struct list targets;
    struct list waiting; /* targets by due time */
    struct list turn;    /* in checker.turns */
    struct checker *checker;
    struct checker_group_conf conf;
    struct check_script script;
    unsigned n_targets;
    unsigned n_used;
    unsigned n_up;
    unsigned under_way;
    struct log_limit late_limit;
};

struct checker {
    struct netloop *net;
    struct checker_conf conf;
    struct list groups;
    struct list turns; /* groups, see note: turns */
    unsigned share;    /* of a group; 0: recompute */
    struct list free;  /* slots used before */
    unsigned n_slots;  /* ever used; others are untouched */
    unsigned under_way;
    unsigned n_targets;
    unsigned n_waiting;
    unsigned n_undecided;
    uint64_t n_added;
    struct task at_stop;
    bool stopped;
    struct timer retry;
    bool paused;           /* out of resources */
    int64_t episode_at_ns; /* start of the shortage; 0: none */
    unsigned episode_errors;
    struct log_limit log_limit;
    struct checker_slot slots[];
};

/* Timer of a due check; of the retry after a shortage. */
extern const struct task_type checker_timer_type;
extern const struct task_type checker_retry_type;

/*
 * checker_schedule(t, at_ns):
 * Start the timer of an idle ${t}.
 *
 * Thread: checker's loop
 */
void checker_schedule(struct checker_target *t, int64_t at_ns);

/*
 * checker_decided(k):
 * Decrement n_undecided; the last one calls conf.decided().
 *
 * Thread: checker's loop, or after its end
 */
void checker_decided(struct checker *k);

/*
 * checker_resize(g, n):
 * Add ${n} (or -1) to the target counts.
 *
 * Thread: checker's loop, or after its end
 */
void checker_resize(struct checker_group *g, int n);

/*
 * checker_count(t) / checker_uncount(t):
 * Recount ${t} in n_used and n_up; remove it from them.
 *
 * Thread: checker's loop, or after its end
 */
void checker_count(struct checker_target *t);
void checker_uncount(struct checker_target *t);

/*
 * checker_wait(t) / checker_unwait(t):
 * Queue the due ${t}; dequeue it, if queued.
 *
 * Thread: checker's loop, or after its end
 */
void checker_wait(struct checker_target *t);
void checker_unwait(struct checker_target *t);

/*
 * checker_next(k) / checker_end_one(g):
 * Dequeue the next target and count it under way, NULL if none may start; count one of ${g} as
 * over.
 *
 * Thread: checker's loop
 */
struct checker_target *checker_next(struct checker *k);
void checker_end_one(struct checker_group *g);

#endif
