/* engine/timed: see timed.h. */
#include "engine/timed.h"

#include <stddef.h>

#include "base/clock.h"

void timed_init(struct timed *t, const struct task_type *type)
{
    t->task.type = type;
    t->at_ns = 0;
    t->rank_ns = 0;
    t->period_ns = 0;
    t->order = 0;
    t->state = TIMED_IDLE;
    atomic_init(&t->claim, TIMED_FREE);
    t->own_type = NULL;
}

int64_t timed_next_at_ns(const struct timed *t, int64_t now_ns)
{
    if (t->period_ns > 0)
        return clock_add_ns(t->at_ns, t->period_ns);
    return clock_add_ns(now_ns, -t->period_ns);
}
