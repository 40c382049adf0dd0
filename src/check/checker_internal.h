/*
 * check/checker_internal: shared by checker.c, checker_turn.c and checker_run.c.
 *
 * note: turns. A group's due targets wait in its queue; checker.share limits the checks under way
 * of each group. Groups below this limit take turns, one check each, so servers that time out delay
 * only their own group.
 */
#ifndef CHECK_CHECKER_INTERNAL_H
#define CHECK_CHECKER_INTERNAL_H

#include "base/ref.h"
#include "base/arena.h"
#include "base/list.h"
#include "base/log.h"
#include "check/checker.h"

struct checker_slot {
    struct check check;
    struct list link;
    struct checker *checker;
    struct checker_target *target; /* NULL: removed during the check */
    struct checker_rules *rules;   /* a reference, for the check under way */
    bool as_sessions;              /* the check uses the addresses that sessions use */
    struct proxy_header_conf send_proxy;
    struct address addresses[ENDPOINT_ADDRESSES];
};

/* Slots allocated by one checker_reserve(). */
struct checker_block {
    struct list link;
    unsigned n;
    unsigned n_used; /* slots ever used */
    struct checker_slot slots[];
};

struct checker_rules {
    struct ref references; /* by groups and checks under way */
    struct checker_rules_conf conf;
    struct check_script script;
};

struct checker_target {
    struct timer timer;
    struct list link;
    struct list waiting;         /* in the group's queue */
    struct checker_group *group; /* NULL: in no group */
    struct checker_slot *slot;   /* NULL: no check under way */
    struct checker_target_conf conf;
    struct health_conf health_conf; /* of the rules, with the target's own values */
    struct health health;
    struct checker_stats stats;
    int64_t due_at_ns;
    uint64_t nth;
    int64_t first_ns; /* offset in the interval, spreads targets */
    bool starts_up;
    bool warming;
    bool was_up;
    bool is_used; /* counted in the group's n_used */
    bool is_up;   /* counted in n_up */
    bool has_no_address;
    bool is_undecided; /* counted in n_undecided of the group */
};

struct checker_group {
    struct list link;
    struct list targets;
    struct list waiting; /* targets by due time */
    struct list turn;    /* in checker.turns */
    struct checker *checker;
    struct checker_group_conf conf;
    struct checker_rules *rules; /* NULL: none yet */
    unsigned n_targets;
    unsigned n_used;
    unsigned n_up;
    unsigned under_way;
    unsigned n_undecided;
    struct log_limit late_limit;
};

struct checker {
    struct netloop *net;
    uint64_t seed;
    struct list groups;
    struct list turns; /* groups, see note: turns */
    unsigned share;    /* maximum checks of a group at once; 0: recompute */
    struct list blocks;
    struct list free; /* free slots that were used before */
    unsigned n_slots;
    unsigned max_under_way;
    unsigned under_way;
    unsigned n_targets;
    unsigned n_waiting;
    uint64_t n_added;
    struct task at_stop;
    bool stopped;
    struct timer retry;
    bool paused;           /* out of resources */
    int64_t episode_at_ns; /* start of the shortage; 0: none */
    unsigned episode_errors;
    struct log_limit log_limit;
};

/* Task types: timer of a target's next check; timer of the retry after a shortage. */
extern const struct task_type checker_timer_type;
extern const struct task_type checker_retry_type;

/*
 * checker_feed(k) / checker_schedule(t, at_ns):
 * Begin due checks while slots are free / start the timer for the next check of an idle ${t}.
 *
 * checker_next(k) / checker_end_one(g):
 * Dequeue the next target and count its check as under way (NULL: no check may start) / count one
 * check of ${g} as ended.
 *
 * Thread: checker's loop
 */
void checker_feed(struct checker *k);
void checker_schedule(struct checker_target *t, int64_t at_ns);
struct checker_target *checker_next(struct checker *k);
void checker_end_one(struct checker_group *g);

/*
 * checker_copy_addresses(t, slot) / checker_choose_header(t, slot):
 * Copy to ${slot} the addresses to check, since those of the endpoint may change before the answer,
 * and return their number / then choose the PROXY header.
 *
 * Thread: checker's loop
 */
unsigned checker_copy_addresses(const struct checker_target *t, struct checker_slot *slot);
void checker_choose_header(const struct checker_target *t, struct checker_slot *slot);

/*
 * checker_decided(g) / checker_resize(g, n):
 * Count one target of ${g} as decided; after the last one call conf.decided() / change the target
 * counts by ${n}: 1 or -1.
 *
 * checker_count(t) / checker_uncount(t):
 * Update the counts n_used and n_up for ${t} / remove ${t} from them.
 *
 * checker_wait(t) / checker_unwait(t):
 * Queue the due ${t} / dequeue it, if queued.
 *
 * Thread: checker's loop, or main while it does not run
 */
void checker_decided(struct checker_group *g);
void checker_resize(struct checker_group *g, int n);
void checker_count(struct checker_target *t);
void checker_uncount(struct checker_target *t);
void checker_wait(struct checker_target *t);
void checker_unwait(struct checker_target *t);

#endif
