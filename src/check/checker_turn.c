/* check/checker_turn: fair shares of the check slots. See note: turns in checker_internal.h. */
#include "check/checker_internal.h"

/*
 * Largest limit per group, at least 1, for which the sum of min(targets, limit) over all groups
 * fits the slots. Groups with no more targets than that never wait.
 */
static unsigned checker_fair_share(const struct checker *k)
{
    unsigned low = 1, high = k->max_under_way;

    while (low < high) {
        unsigned share = low + (high - low + 1) / 2;
        uint64_t wanted = 0;

        list_for_each (node, &k->groups) {
            unsigned n = LIST_ENTRY(node, struct checker_group, link)->n_targets;

            wanted += n < share ? n : share;
        }
        if (wanted <= k->max_under_way)
            low = share;
        else
            high = share - 1;
    }
    return low;
}

static void checker_line_up(struct checker_group *g)
{
    if (list_empty(&g->waiting) || g->under_way >= g->checker->share)
        list_remove(&g->turn);
    else if (list_empty(&g->turn))
        list_append(&g->checker->turns, &g->turn);
}

static void checker_share_out(struct checker *k)
{
    k->share = checker_fair_share(k);
    list_for_each (node, &k->groups)
        checker_line_up(LIST_ENTRY(node, struct checker_group, link));
}

void checker_resize(struct checker_group *g, int n)
{
    g->n_targets += (unsigned)n;
    g->checker->n_targets += (unsigned)n;
    g->checker->share = 0;
}

/* Insert by due time, usually at the end. */
void checker_wait(struct checker_target *t)
{
    struct checker_group *g = t->group;
    struct list *at = &g->waiting;

    while (at->prev != &g->waiting &&
           CONTAINER_OF(at->prev, struct checker_target, waiting)->due_at_ns > t->due_at_ns)
        at = at->prev;
    list_append(at, &t->waiting);
    g->checker->n_waiting++;
    checker_line_up(g);
}

void checker_unwait(struct checker_target *t)
{
    struct checker_group *g = t->group;

    if (list_empty(&t->waiting))
        return;
    list_remove(&t->waiting);
    g->checker->n_waiting--;
    checker_line_up(g);
}

struct checker_target *checker_next(struct checker *k)
{
    struct checker_target *t;
    struct checker_group *g;

    if (k->share == 0)
        checker_share_out(k);
    if (list_empty(&k->turns))
        return NULL;
    g = LIST_FIRST(&k->turns, struct checker_group, turn);
    t = LIST_FIRST(&g->waiting, struct checker_target, waiting);
    list_remove(&g->turn);
    checker_unwait(t);
    g->under_way++;
    checker_line_up(g);
    return t;
}

void checker_end_one(struct checker_group *g)
{
    g->under_way--;
    checker_line_up(g);
}
