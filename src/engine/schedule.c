/* engine/schedule: see schedule.h. */
#include "engine/schedule.h"

#include "base/clock.h"

void schedule_init(struct schedule *s)
{
    s->root = NULL;
    list_init(&s->due);
    s->n_due = 0;
    s->next_order = 0;
    s->count = 0;
}

static bool before(const struct timed *a, const struct timed *b)
{
    return a->rank_ns != b->rank_ns ? a->rank_ns < b->rank_ns : a->order < b->order;
}

/* Make the later of two roots the first child of the earlier one. */
static struct timed *meld(struct timed *a, struct timed *b)
{
    struct timed *child;

    if (!a)
        return b;
    if (!b)
        return a;
    if (before(b, a)) {
        child = a;
        a = b;
    } else {
        child = b;
    }
    child->u.heap.prev = a;
    child->u.heap.next = a->u.heap.child;
    if (a->u.heap.child)
        a->u.heap.child->u.heap.prev = child;
    a->u.heap.child = child;
    return a;
}

/* Two passes over siblings: meld pairs from the left, then the pairs from the right. */
static struct timed *meld_siblings(struct timed *first)
{
    struct timed *pairs = NULL, *root = NULL;

    while (first) {
        struct timed *a = first, *b = a->u.heap.next, *pair;

        first = b ? b->u.heap.next : NULL;
        a->u.heap.next = NULL;
        if (b)
            b->u.heap.next = NULL;
        pair = meld(a, b);
        pair->u.heap.next = pairs;
        pairs = pair;
    }
    while (pairs) {
        struct timed *pair = pairs;

        pairs = pair->u.heap.next;
        pair->u.heap.next = NULL;
        root = meld(root, pair);
    }
    if (root)
        root->u.heap.prev = NULL;
    return root;
}

static void schedule_insert(struct schedule *s, struct timed *t, int64_t rank_ns)
{
    MUST(t->state == TIMED_IDLE);
    t->rank_ns = rank_ns;
    t->order = s->next_order++;
    t->state = TIMED_WAITING;
    t->u.heap.child = t->u.heap.next = t->u.heap.prev = NULL;
    s->root = meld(s->root, t);
    s->count++;
}

void schedule_add(struct schedule *s, struct timed *t)
{
    schedule_insert(s, t, t->at_ns);
}

void schedule_add_again(struct schedule *s, struct timed *t, int64_t now_ns)
{
    schedule_insert(s, t, t->at_ns > now_ns ? t->at_ns : now_ns);
}

static void schedule_unlink(struct schedule *s, struct timed *t)
{
    struct timed *children = meld_siblings(t->u.heap.child);

    if (t == s->root) {
        s->root = children;
        return;
    }
    if (t->u.heap.prev->u.heap.child == t)
        t->u.heap.prev->u.heap.child = t->u.heap.next;
    else
        t->u.heap.prev->u.heap.next = t->u.heap.next;
    if (t->u.heap.next)
        t->u.heap.next->u.heap.prev = t->u.heap.prev;
    s->root = meld(s->root, children);
}

void schedule_remove(struct schedule *s, struct timed *t)
{
    if (t->state == TIMED_WAITING) {
        schedule_unlink(s, t);
        s->count--;
    } else if (t->state == TIMED_DUE) {
        list_remove(&t->u.due);
        s->n_due--;
    }
    t->state = TIMED_IDLE;
}

int64_t schedule_next_at_ns(const struct schedule *s)
{
    return s->root ? s->root->rank_ns : CLOCK_NEVER;
}

struct timed *schedule_take_due(struct schedule *s, int64_t now_ns)
{
    struct timed *t = s->root;

    if (!t || t->rank_ns > now_ns)
        return NULL;
    schedule_remove(s, t);
    return t;
}

void schedule_fetch_due(struct schedule *s, int64_t now_ns, uint64_t place, unsigned max)
{
    struct timed *t;

    while (s->n_due < max && (t = schedule_take_due(s, now_ns))) {
        t->state = TIMED_DUE;
        t->order = place;
        list_append(&s->due, &t->u.due);
        s->n_due++;
    }
}

struct timed *schedule_first_due(const struct schedule *s)
{
    return s->n_due > 0 ? LIST_FIRST(&s->due, struct timed, u.due) : NULL;
}
