/*
 * upstream/checker_internal: what the parts of the checker know of each other: checker.c (groups,
 * targets, life), checker_turn.c (which check is made next) and checker_run.c (making checks, and
 * what comes of them). Private to them.
 *
 * note: turns. Each group has a queue of its targets that are due, and a limit of checks under way
 * (checker.share, the same for all groups). Groups that have targets waiting and are below the
 * limit take turns, one check each. So a group whose servers do not answer, and keep their slots
 * until they time out, holds up its own checks only.
 */
#ifndef UPSTREAM_CHECKER_INTERNAL_H
#define UPSTREAM_CHECKER_INTERNAL_H

#include "base/list.h"
#include "base/log.h"
#include "upstream/checker.h"

/* Where a check is made. */
struct checker_slot {
    struct check check;
    struct list link; /* while free */
    struct checker *checker;
    struct checker_target *target; /* NULL: free, or the target was removed */
    bool as_sessions;              /* it connects where sessions do */
    struct address addresses[ENDPOINT_ADDRESSES];
};

struct checker_target {
    struct timer timer;
    struct list link;    /* of the group */
    struct list waiting; /* for a slot; in the queue of the group */
    struct checker_group *group;
    struct checker_slot *slot; /* NULL: no check is under way */
    struct checker_target_conf conf;
    struct health health;
    struct checker_stats stats;
    int64_t due_at_ns;
    int64_t first_ns; /* its part of the interval, so that targets are spread over it */
    bool warming;
    bool was_up;
    bool is_used; /* as it was counted in the group's n_used */
    bool is_up;   /* and n_up */
    bool has_no_address;
};

struct checker_group {
    struct list link;
    struct list targets;
    struct list waiting; /* targets, in the order in which they became due */
    struct list turn;    /* in checker.turns */
    struct checker *checker;
    struct checker_group_conf conf;
    struct check_script script;
    unsigned n_targets;
    unsigned n_used; /* with a weight */
    unsigned n_up;   /* of those */
    unsigned under_way;
    struct log_limit late_limit;
};

struct checker {
    struct netloop *net;
    struct checker_conf conf;
    struct list groups;
    struct list turns; /* groups, see note: turns */
    unsigned share;    /* checks that a group may have under way; 0: to be worked out anew */
    struct list free;  /* slots that were used before */
    unsigned n_slots;  /* ever used; the memory of the others was not touched yet */
    unsigned under_way;
    unsigned n_targets;
    unsigned n_waiting;
    unsigned n_undecided;
    uint64_t n_added; /* ever */
    struct task at_stop;
    bool stopped;
    struct timer retry;
    bool paused;           /* there is a lack of resources */
    int64_t episode_at_ns; /* since when; 0: there is none */
    int64_t error_at_ns;   /* when it showed last */
    unsigned episode_errors;
    struct log_limit log_limit;
    struct checker_slot slots[];
};

/* Of a target's timer: its check is due. Of the checker's: resources may be there again. */
extern const struct task_type checker_timer_type;
extern const struct task_type checker_retry_type;

/*
 * checker_schedule(t, at_ns):
 * Have ${t}, which neither waits nor is under way, checked at ${at_ns}.
 *
 * Thread: loop of the checker
 */
void checker_schedule(struct checker_target *t, int64_t at_ns);

/*
 * checker_decided(k):
 * One of checker.n_undecided is decided, or gone.
 *
 * Thread: loop of the checker, or after it has ended
 */
void checker_decided(struct checker *k);

/*
 * checker_resize(g, n):
 * ${g} has ${n} targets more, or less.
 *
 * Thread: loop of the checker, or after it has ended
 */
void checker_resize(struct checker_group *g, int n);

/*
 * checker_count(t) / checker_uncount(t):
 * Count ${t} in its group as it is now, if it has a weight; no longer.
 *
 * Thread: loop of the checker, or after it has ended
 */
void checker_count(struct checker_target *t);
void checker_uncount(struct checker_target *t);

/*
 * checker_wait(t) / checker_unwait(t):
 * ${t} is due: put it in its group's queue. Take it out, if it is there.
 *
 * Thread: loop of the checker, or after it has ended
 */
void checker_wait(struct checker_target *t);
void checker_unwait(struct checker_target *t);

/*
 * checker_next(k) / checker_over(g):
 * The target to be checked next, which waits no more and counts as under way in its group. One that
 * was under way in ${g} is over.
 *
 * Thread: loop of the checker
 * Errors: NULL (no target waits, or only those of groups at their limit)
 */
struct checker_target *checker_next(struct checker *k);
void checker_over(struct checker_group *g);

#endif
