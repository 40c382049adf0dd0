/*
 * note: sweep. An ejection stores EJECTION_OUT, then writes `next_return_at_ns` (release), even an
 * unchanged value. A sweep sets `next_return_at_ns` to CLOCK_NEVER (acquire), then reads the
 * endpoints. Either the sweep sees EJECTION_OUT, or the ejection writes its lower value later,
 * which stays. A sweep skips claimed endpoints: their claimers lower the value afterwards.
 */
#include "balance/ejection.h"

#include "base/clock.h"

void ejection_group_init(struct ejection_group *g, const struct ejection_conf *conf,
                         unsigned n_endpoints)
{
    atomic_init(&g->conf, conf);
    atomic_init(&g->n_endpoints, n_endpoints);
    atomic_init(&g->n_out, 0);
    atomic_init(&g->next_return_at_ns, CLOCK_NEVER);
}

void ejection_group_use(struct ejection_group *g, const struct ejection_conf *conf)
{
    atomic_store(&g->conf, conf); /* sequentially consistent, for grace_begin() */
}

void ejection_group_resize(struct ejection_group *g, unsigned n_endpoints)
{
    atomic_store_explicit(&g->n_endpoints, n_endpoints, memory_order_relaxed);
}

void ejection_worked(struct ejection *x)
{
    /* Load first: without a store, the cache line stays shared between cores. */
    if (atomic_load_explicit(&x->failures, memory_order_relaxed) > 0)
        atomic_store_explicit(&x->failures, 0, memory_order_relaxed);
}

static bool ejection_claim(struct ejection *x, enum ejection_state from)
{
    int expected = (int)from;

    return atomic_compare_exchange_strong_explicit(&x->state, &expected, EJECTION_CLAIMED,
                                                   memory_order_acquire, memory_order_relaxed);
}

static void ejection_give_back(struct ejection *x, enum ejection_state to)
{
    atomic_store_explicit(&x->state, (int)to, memory_order_release);
}

/* Maximum ejected endpoints: 0 for a group of one, or if max_percent is 0; else at least 1. */
static unsigned ejection_max_out(const struct ejection_group *g)
{
    uint64_t n = atomic_load_explicit(&g->n_endpoints, memory_order_relaxed);
    unsigned max_percent = atomic_load(&g->conf)->max_percent;
    unsigned max = (unsigned)(n * max_percent / 100);

    if (n < 2 || max_percent == 0)
        return 0;
    return max > 0 ? max : 1;
}

static bool ejection_take_place(struct ejection_group *g)
{
    if (atomic_fetch_add_explicit(&g->n_out, 1, memory_order_relaxed) < ejection_max_out(g))
        return true;
    atomic_fetch_sub_explicit(&g->n_out, 1, memory_order_relaxed);
    return false;
}

/* Lower next_return_at_ns to ${at_ns}. Writes even an unchanged value; see note: sweep. */
static void ejection_expect_return(struct ejection_group *g, int64_t at_ns)
{
    int64_t next_ns = atomic_load_explicit(&g->next_return_at_ns, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(&g->next_return_at_ns, &next_ns,
                                                  at_ns < next_ns ? at_ns : next_ns,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

static int64_t ejection_time_ns(const struct ejection_conf *conf, unsigned times)
{
    int64_t time_ns;

    if (__builtin_mul_overflow(conf->time_ns, (int64_t)times, &time_ns) ||
        time_ns > conf->time_max_ns)
        return conf->time_max_ns;
    return time_ns;
}

static int64_t ejection_eject(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                              int64_t now_ns)
{
    const struct ejection_conf *conf = g->conf;
    int64_t time_ns, returns_at_ns;

    if (now_ns - x->returns_at_ns >= conf->time_max_ns)
        x->times = 0; /* the last ejection is long over */
    time_ns = ejection_time_ns(conf, ++x->times);
    returns_at_ns = clock_add_ns(now_ns, time_ns);
    x->returns_at_ns = returns_at_ns;
    (void)endpoint_set_flag(e, ENDPOINT_EJECTED);
    ejection_give_back(x, EJECTION_OUT);
    ejection_expect_return(g, returns_at_ns);
    return time_ns;
}

int64_t ejection_failed(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                        int64_t now_ns, bool others)
{
    const struct ejection_conf *conf = g->conf;
    unsigned failures;

    if (conf->failures == 0)
        return 0;
    failures = atomic_fetch_add_explicit(&x->failures, 1, memory_order_relaxed) + 1;
    if (failures < conf->failures)
        return 0;
    if (!others || !ejection_claim(x, EJECTION_IN))
        return 0;
    if (!ejection_take_place(g)) {
        ejection_give_back(x, EJECTION_IN); /* the next failure may eject ${e} */
        return 0;
    }
    atomic_store_explicit(&x->ejected_after, failures, memory_order_relaxed);
    return ejection_eject(g, x, e, now_ns);
}

void ejection_sweep_begin(struct ejection_group *g)
{
    (void)atomic_exchange_explicit(&g->next_return_at_ns, CLOCK_NEVER, memory_order_acquire);
}

static void ejection_return_now(struct ejection_group *g, struct ejection *x, struct endpoint *e)
{
    /* Forget the failures: the failed sessions began before the ejection. */
    atomic_store_explicit(&x->failures, 0, memory_order_relaxed);
    (void)endpoint_clear_flag(e, ENDPOINT_EJECTED);
    atomic_fetch_sub_explicit(&g->n_out, 1, memory_order_relaxed);
    ejection_give_back(x, EJECTION_IN);
}

bool ejection_return(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                     int64_t now_ns)
{
    int64_t returns_at_ns;

    if (!ejection_claim(x, EJECTION_OUT))
        return false;
    returns_at_ns = x->returns_at_ns;
    if (returns_at_ns > now_ns) {
        ejection_give_back(x, EJECTION_OUT);
        ejection_expect_return(g, returns_at_ns);
        return false;
    }
    ejection_return_now(g, x, e);
    return true;
}

bool ejection_cancel(struct ejection_group *g, struct ejection *x, struct endpoint *e)
{
    if (!ejection_claim(x, EJECTION_OUT))
        return false;
    x->returns_at_ns = clock_now_ns();
    ejection_return_now(g, x, e);
    return true;
}

bool ejection_get(struct ejection_group *g, struct ejection *x, struct ejection_past *out)
{
    if (!ejection_claim(x, EJECTION_OUT))
        return false;
    *out = (struct ejection_past){.returns_at_ns = x->returns_at_ns, .times = x->times};
    ejection_give_back(x, EJECTION_OUT);
    ejection_expect_return(g, out->returns_at_ns);
    return true;
}

void ejection_restore(struct ejection_group *g, struct ejection *x, struct endpoint *e,
                      const struct ejection_past *past, int64_t now_ns)
{
    const struct ejection_conf *conf = g->conf;
    int64_t latest_ns = clock_add_ns(now_ns, conf->time_max_ns);

    if (conf->failures == 0 || past->returns_at_ns <= now_ns || !ejection_claim(x, EJECTION_IN))
        return;
    atomic_fetch_add_explicit(&g->n_out, 1, memory_order_relaxed);
    x->times = past->times;
    x->returns_at_ns = past->returns_at_ns < latest_ns ? past->returns_at_ns : latest_ns;
    latest_ns = x->returns_at_ns;
    (void)endpoint_set_flag(e, ENDPOINT_EJECTED);
    ejection_give_back(x, EJECTION_OUT);
    ejection_expect_return(g, latest_ns);
}
