/*
 * service/ejection: see ejection.h.
 *
 * note: sweep. Who ejects marks first and then lowers `next_return_at_ns` (release); who sweeps raises it (acquire) and then
 * looks at the marks. So either the sweep sees the mark, or the lower value comes after it and stays.
 */
#include "service/ejection.h"

#include "base/clock.h"

void ejection_group_init(struct ejection_group *g, const struct ejection_conf *conf,
                         unsigned n_endpoints)
{
    g->conf = conf;
    g->n_endpoints = n_endpoints;
    atomic_init(&g->n_out, 0);
    atomic_init(&g->next_return_at_ns, CLOCK_NEVER);
}

void ejection_worked(struct ejection *x)
{
    /* The load keeps the line shared as long as all goes well. */
    if (atomic_load_explicit(&x->failures, memory_order_relaxed) > 0)
        atomic_store_explicit(&x->failures, 0, memory_order_relaxed);
}

/* One more is out, if that is not too many; the first may always be unless max_percent is 0. */
static bool ejection_take_place(struct ejection_group *g)
{
    unsigned before = atomic_fetch_add_explicit(&g->n_out, 1, memory_order_relaxed);
    unsigned max = g->n_endpoints * g->conf->max_percent / 100;

    if (max == 0 && g->conf->max_percent > 0 && g->n_endpoints > 1)
        max = 1;
    if (before < max)
        return true;
    atomic_fetch_sub_explicit(&g->n_out, 1, memory_order_relaxed);
    return false;
}

static void ejection_expect_return(struct ejection_group *g, int64_t at_ns)
{
    int64_t next_ns = atomic_load_explicit(&g->next_return_at_ns, memory_order_relaxed);

    while (at_ns < next_ns &&
           !atomic_compare_exchange_weak_explicit(&g->next_return_at_ns, &next_ns, at_ns,
                                                  memory_order_release, memory_order_relaxed))
        ; /* see note: sweep */
}

static int64_t ejection_time_ns(const struct ejection_conf *conf, unsigned times)
{
    int64_t time_ns;

    if (__builtin_mul_overflow(conf->time_ns, (int64_t)times, &time_ns) ||
        time_ns > conf->time_max_ns)
        return conf->time_max_ns;
    return time_ns;
}

/* How often in succession, this time included. */
static unsigned ejection_times(const struct ejection_conf *conf, const struct ejection *x,
                               int64_t now_ns)
{
    int64_t returned_at_ns = atomic_load_explicit(&x->returns_at_ns, memory_order_relaxed);

    if (now_ns - returned_at_ns >= conf->time_max_ns)
        return 1;
    return atomic_load_explicit(&x->times, memory_order_relaxed) + 1;
}

int64_t ejection_failed(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                        int64_t now_ns)
{
    const struct ejection_conf *conf = g->conf;
    int64_t time_ns;
    unsigned times;

    if (conf->failures == 0 ||
        atomic_fetch_add_explicit(&x->failures, 1, memory_order_relaxed) + 1 < conf->failures)
        return 0;
    if ((endpoint_load(e) & ENDPOINT_EJECTED) != 0 || !ejection_take_place(g))
        return 0;
    times = ejection_times(conf, x, now_ns);
    time_ns = ejection_time_ns(conf, times);
    /* Before the mark: whoever sees that one sees when the time is over. Two that come at once mean the same instant. */
    atomic_store_explicit(&x->returns_at_ns, clock_add_ns(now_ns, time_ns), memory_order_relaxed);
    if (!endpoint_mark(e, ENDPOINT_EJECTED)) {
        atomic_fetch_sub_explicit(&g->n_out, 1, memory_order_relaxed);
        return 0;
    }
    atomic_store_explicit(&x->times, times, memory_order_relaxed);
    atomic_store_explicit(&x->failures, 0, memory_order_relaxed);
    ejection_expect_return(g, clock_add_ns(now_ns, time_ns));
    return time_ns;
}

void ejection_sweep_begin(struct ejection_group *g)
{
    (void)atomic_exchange_explicit(&g->next_return_at_ns, CLOCK_NEVER, memory_order_acquire);
}

bool ejection_return(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                     int64_t now_ns)
{
    int64_t at_ns = atomic_load_explicit(&x->returns_at_ns, memory_order_relaxed);

    if ((endpoint_load(e) & ENDPOINT_EJECTED) == 0)
        return false;
    if (at_ns > now_ns) {
        ejection_expect_return(g, at_ns);
        return false;
    }
    if (!endpoint_unmark(e, ENDPOINT_EJECTED))
        return false;
    atomic_fetch_sub_explicit(&g->n_out, 1, memory_order_relaxed);
    return true;
}
