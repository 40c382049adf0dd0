#include "engine/timer_heap.h"

#include "base/clock.h"

void timer_heap_init(struct timer_heap *s)
{
    s->root = s->silence_root = NULL;
    list_init(&s->due);
    s->n_due = 0;
    s->next_order = 0;
    s->count = 0;
}

static bool timer_heap_before(const struct timer *a, const struct timer *b)
{
    return a->rank_ns != b->rank_ns ? a->rank_ns < b->rank_ns : a->order < b->order;
}

/* Merge heaps: the later root becomes the earlier one's first child. */
static struct timer *timer_heap_meld(struct timer *a, struct timer *b)
{
    struct timer *child;

    if (!a)
        return b;
    if (!b)
        return a;
    if (timer_heap_before(b, a)) {
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

/* Merge siblings in two passes: pairs from the left, then the results from the right. */
static struct timer *timer_heap_meld_siblings(struct timer *first)
{
    struct timer *pairs = NULL, *root = NULL;

    while (first) {
        struct timer *a = first, *b = a->u.heap.next, *pair;

        first = b ? b->u.heap.next : NULL;
        a->u.heap.next = NULL;
        if (b)
            b->u.heap.next = NULL;
        pair = timer_heap_meld(a, b);
        pair->u.heap.next = pairs;
        pairs = pair;
    }
    while (pairs) {
        struct timer *pair = pairs;

        pairs = pair->u.heap.next;
        pair->u.heap.next = NULL;
        root = timer_heap_meld(root, pair);
    }
    if (root)
        root->u.heap.prev = NULL;
    return root;
}

static struct timer **timer_heap_root(struct timer_heap *s, const struct timer *t)
{
    return t->silence ? &s->silence_root : &s->root;
}

static void timer_heap_insert(struct timer_heap *s, struct timer *t, int64_t rank_ns)
{
    struct timer **root = timer_heap_root(s, t);

    MUST(t->state == TIMER_IDLE);
    t->rank_ns = rank_ns;
    t->order = s->next_order++;
    t->state = TIMER_WAITING;
    t->u.heap.child = t->u.heap.next = t->u.heap.prev = NULL;
    *root = timer_heap_meld(*root, t);
    s->count++;
}

void timer_heap_add(struct timer_heap *s, struct timer *t)
{
    timer_heap_insert(s, t, t->at_ns);
}

void timer_heap_add_again(struct timer_heap *s, struct timer *t, int64_t now_ns)
{
    timer_heap_insert(s, t, t->at_ns > now_ns ? t->at_ns : now_ns);
}

static void timer_heap_unlink(struct timer_heap *s, struct timer *t)
{
    struct timer *children = timer_heap_meld_siblings(t->u.heap.child);
    struct timer **root = timer_heap_root(s, t);

    if (t == *root) {
        *root = children;
        return;
    }
    if (t->u.heap.prev->u.heap.child == t)
        t->u.heap.prev->u.heap.child = t->u.heap.next;
    else
        t->u.heap.prev->u.heap.next = t->u.heap.next;
    if (t->u.heap.next)
        t->u.heap.next->u.heap.prev = t->u.heap.prev;
    *root = timer_heap_meld(*root, children);
}

void timer_heap_remove(struct timer_heap *s, struct timer *t)
{
    if (t->state == TIMER_WAITING) {
        timer_heap_unlink(s, t);
        s->count--;
    } else if (t->state == TIMER_DUE) {
        list_remove(&t->u.due);
        s->n_due--;
    }
    t->state = TIMER_IDLE;
}

/* The earlier of two timers, or the one that is there. */
static struct timer *timer_heap_first(struct timer *a, struct timer *b)
{
    if (!a || !b)
        return a ? a : b;
    return timer_heap_before(b, a) ? b : a;
}

int64_t timer_heap_next_at_ns(const struct timer_heap *s)
{
    const struct timer *t = timer_heap_first(s->root, s->silence_root);

    return t ? t->rank_ns : CLOCK_NEVER;
}

static struct timer *timer_heap_take(struct timer_heap *s, int64_t now_ns, int64_t heard_ns)
{
    struct timer *t = s->root && s->root->rank_ns <= now_ns ? s->root : NULL;

    if (s->silence_root && s->silence_root->rank_ns <= heard_ns)
        t = timer_heap_first(t, s->silence_root);
    if (t)
        timer_heap_remove(s, t);
    return t;
}

struct timer *timer_heap_take_due(struct timer_heap *s, int64_t now_ns)
{
    return timer_heap_take(s, now_ns, now_ns);
}

void timer_heap_fetch_due(struct timer_heap *s, int64_t now_ns, int64_t heard_ns, uint64_t place,
                          unsigned max)
{
    struct timer *t;

    while (s->n_due < max && (t = timer_heap_take(s, now_ns, heard_ns))) {
        t->state = TIMER_DUE;
        t->order = place;
        list_append(&s->due, &t->u.due);
        s->n_due++;
    }
}

struct timer *timer_heap_first_due(const struct timer_heap *s)
{
    return s->n_due > 0 ? LIST_FIRST(&s->due, struct timer, u.due) : NULL;
}
