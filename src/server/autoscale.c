#include "server/autoscale.h"

#include "engine/loop_group.h"
#include "engine/loop_stats.h"

void autoscale_forget(struct autoscale *a)
{
    a->plan.n_samples = 0;
    a->at_ns = 0;
}

/* Add up what the loops were busy since the last sample: see loop_stats_busy_ns(). */
static void autoscale_measure(struct autoscale *a, const struct loop_group *workers, int64_t now_ns)
{
    for (unsigned i = 0; i < a->plan.n; i++) {
        struct loop_stats s;
        int64_t busy_ns, since_ns;

        loop_stats(loop_group_at(workers, i), &s);
        busy_ns = loop_stats_busy_ns(&s);
        since_ns = busy_ns - a->busy_ns[i];
        if (a->at_ns > 0 && since_ns > 0)
            a->total_ns += since_ns < now_ns - a->at_ns ? since_ns : now_ns - a->at_ns;
        a->busy_ns[i] = busy_ns;
    }
    a->at_ns = now_ns;
}

void autoscale_look(struct autoscale *a, const struct loop_group *workers, unsigned min,
                    unsigned max)
{
    struct autoscale_plan *p = &a->plan;
    unsigned n = loop_group_in_use(workers);
    int64_t now_ns = clock_now_ns();

    if (p->n != n || p->min != min || p->max != max)
        autoscale_forget(a);
    p->n = n;
    p->min = min;
    p->max = max;
    if (max == 0 || (a->at_ns > 0 && now_ns - a->at_ns < AUTOSCALE_PLAN_LOOK_NS))
        return;
    autoscale_measure(a, workers, now_ns);
    autoscale_plan_add(p, &(struct autoscale_plan_sample){now_ns, a->total_ns});
}

bool autoscale_is_settling(const struct autoscale *a)
{
    return a->plan.max > 0 && a->plan.n > a->plan.min;
}
