/* support/observe: see observe.h. */
#include "support/observe.h"

#include "support/loop_runner.h"
#include "support/until.h"

struct loop_stats observe_stats(const struct loop *loop)
{
    struct loop_stats stats;

    loop_stats(loop, &stats);
    return stats;
}

struct loop_stats observe_until_asleep(struct loop *loop)
{
    struct loop_stats before = loop_runner_stats(loop);

    UNTIL(observe_stats(loop).polls_blocking > before.polls_blocking);
    PAUSE_MS(20); /* it counts a moment before it sleeps */
    return observe_stats(loop);
}

void observe_until_idle(const struct loop *loop)
{
    struct loop_stats stats;

    UNTIL((stats = observe_stats(loop), stats.tasks_pending == 0 && stats.turn_ns <= 0));
}
