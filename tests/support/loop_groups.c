#include "support/loop_groups.h"

#include "base/clock.h"
#include "engine/loop_group.h"
#include "support/tasks.h"

struct loop_groups loop_groups;

int loop_groups_create_with(unsigned n, enum chooser_kind chooser)
{
    struct loop_group_conf conf = {
        .name = "work",
        .pool = 2,
        .n_loops = n,
        .max_loops = MAX_LOOPS,
        .chooser = chooser,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    return loop_group_create(&loop_groups.group, &conf);
}

int loop_groups_create(unsigned n)
{
    return loop_groups_create_with(n, CHOOSER_ROUND_ROBIN);
}

void loop_groups_nothing(void *arg)
{
    (void)arg;
}

unsigned loop_groups_ratio_of(unsigned i)
{
    struct loop_stats stats;

    loop_stats(loop_group_at(loop_groups.group, i), &stats);
    return stats.io_ratio;
}
