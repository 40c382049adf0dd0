#include "engine/heard.h"

#include <errno.h>

void heard_judge_poll(struct heard *h, int64_t began_at_ns, int error)
{
    if (error == EINTR)
        return;
    if (error != 0) {
        h->at_ns = began_at_ns;
        h->series = 0;
        return;
    }
    if (h->series == 0)
        h->series_at_ns = began_at_ns;
    if (++h->series < HEARD_POLLS)
        return;
    h->at_ns = h->series_at_ns;
    h->series = 0;
}

static int64_t heard_length_ns(const struct heard_absence *a)
{
    return a->back_at_ns - a->gone_at_ns;
}

void heard_add_absence(struct heard *h, int64_t gone_at_ns, int64_t back_at_ns)
{
    if (gone_at_ns < h->last.back_at_ns) { /* a part of it was noted */
        h->last.gone_at_ns = clock_sooner(h->last.gone_at_ns, gone_at_ns);
        h->last.back_at_ns = clock_later(h->last.back_at_ns, back_at_ns);
        return;
    }
    if (heard_length_ns(&h->last) >= heard_length_ns(&h->longest) ||
        gone_at_ns - h->longest.back_at_ns >= HEARD_REMEMBER_NS)
        h->longest = h->last;
    h->last = (struct heard_absence){.gone_at_ns = gone_at_ns, .back_at_ns = back_at_ns};
}

static void heard_adopt_absence(struct heard *h, const struct heard_absence *a)
{
    if (a->gone_at_ns > h->last.gone_at_ns)
        heard_note_absence(h, a->gone_at_ns, a->back_at_ns);
    else if (heard_length_ns(a) > heard_length_ns(&h->longest))
        h->longest = *a;
}

void heard_adopt(struct heard *h, const struct heard *from)
{
    heard_adopt_absence(h, &from->longest);
    heard_adopt_absence(h, &from->last);
}

static int64_t heard_extend(const struct heard_absence *a, int64_t from_ns, int64_t due_at_ns)
{
    if (from_ns >= a->back_at_ns || due_at_ns <= a->gone_at_ns)
        return due_at_ns;
    return clock_add_ns(due_at_ns, a->back_at_ns - clock_later(from_ns, a->gone_at_ns));
}

int64_t heard_due_ns(const struct heard *h, int64_t from_ns, int64_t limit_ns)
{
    int64_t due_at_ns = clock_add_ns(from_ns, limit_ns);

    due_at_ns = heard_extend(&h->longest, from_ns, due_at_ns);
    return heard_extend(&h->last, from_ns, due_at_ns);
}
