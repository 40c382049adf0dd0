#include "server/autoscale_plan.h"

#include <string.h>

void autoscale_plan_add(struct autoscale_plan *p, const struct autoscale_plan_sample *sample)
{
    if (p->n_samples > 0 &&
        sample->at_ns - p->samples[p->n_samples - 1].at_ns < AUTOSCALE_PLAN_LOOK_NS)
        return;
    if (p->n_samples == AUTOSCALE_PLAN_SAMPLES)
        memmove(&p->samples[0], &p->samples[1], --p->n_samples * sizeof(p->samples[0]));
    p->samples[p->n_samples++] = *sample;
}

/* Percent of one worker that all were busy, of ${over_ns} or more. False: not known for so long. */
static bool autoscale_plan_load(const struct autoscale_plan *p, int64_t over_ns,
                                struct autoscale_wish *load)
{
    const struct autoscale_plan_sample *now = &p->samples[p->n_samples - 1];

    for (unsigned i = p->n_samples; i-- > 0;) {
        load->over_ns = now->at_ns - p->samples[i].at_ns;
        if (load->over_ns < over_ns)
            continue;
        load->percent = (unsigned)((now->busy_ns - p->samples[i].busy_ns) * 100 / load->over_ns);
        return true;
    }
    return false;
}

static unsigned autoscale_plan_more(const struct autoscale_plan *p, unsigned percent)
{
    unsigned n = (percent + AUTOSCALE_PLAN_FAIR - 1) / AUTOSCALE_PLAN_FAIR;

    return n < p->max ? n : p->max;
}

bool autoscale_plan_wish(const struct autoscale_plan *p, struct autoscale_wish *wish)
{
    struct autoscale_wish recent;

    if (!autoscale_plan_load(p, AUTOSCALE_PLAN_UP_NS, &recent))
        return false;
    if (recent.percent > AUTOSCALE_PLAN_HIGH * p->n) {
        *wish = recent;
        wish->n = autoscale_plan_more(p, recent.percent);
    } else if (autoscale_plan_load(p, AUTOSCALE_PLAN_DOWN_NS, wish)) {
        unsigned most = wish->percent > recent.percent ? wish->percent : recent.percent;

        wish->n = p->n > p->min && most < AUTOSCALE_PLAN_FAIR * (p->n - 1) ? p->n - 1 : p->n;
    } else {
        return false;
    }
    wish->percent /= p->n;
    return wish->n != p->n;
}
