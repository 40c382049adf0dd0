/* engine/timer: see timed.h. */
#include "engine/timer.h"

#include <stddef.h>

#include "base/clock.h"

void timer_init(struct timer *t, const struct task_type *type)
{
    t->task.type = type;
    t->at_ns = 0;
    t->rank_ns = 0;
    t->period_ns = 0;
    t->order = 0;
    t->state = TIMER_IDLE;
    atomic_init(&t->claim, TIMER_FREE);
    t->own_type = NULL;
}

int64_t timer_next_at_ns(const struct timer *t, int64_t now_ns)
{
    if (t->period_ns > 0)
        return clock_add_ns(t->at_ns, t->period_ns);
    return clock_add_ns(now_ns, -t->period_ns);
}
