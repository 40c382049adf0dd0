#include "balance/balancer.h"

#include <errno.h>
#include <stdlib.h>

#include "balance/balancer_internal.h"
#include "base/clock.h"
#include "base/hash.h"

/* Initial slow-start factor. */
#define BALANCER_WARM_UP_FROM 0.1

static bool balancer_scan(struct balancer_attempt *a, unsigned start);

static bool balancer_first_choose(struct balancer_attempt *a)
{
    return balancer_scan(a, a->pool->from);
}

static const struct balancer_kind_ops balancer_kinds[] = {
    [BALANCER_ROUND_ROBIN] = {.build = balancer_cycle_build, .choose = balancer_cycle_choose},
    [BALANCER_LEAST_CONNECTIONS] = {.choose = balancer_least_choose},
    [BALANCER_RANDOM] = {.build = balancer_cycle_build, .choose = balancer_random_choose},
    [BALANCER_SOURCE_HASH] = {.build = balancer_rendezvous_build,
                              .choose = balancer_rendezvous_choose,
                              .keyed = true},
    [BALANCER_MAGLEV] = {.build = balancer_maglev_build,
                         .choose = balancer_maglev_choose,
                         .keyed = true},
    [BALANCER_LEAST_TIME] = {.build = balancer_cycle_build, .choose = balancer_time_choose},
    [BALANCER_FIRST] = {.choose = balancer_first_choose, .in_order = true},
};
_Static_assert(ARRAY_LEN(balancer_kinds) == BALANCER_KINDS, "new kinds stand before the last one");

static struct balancer_share balancer_share(const struct balancer_conf *conf, unsigned i)
{
    struct endpoint *e = conf->endpoints[i];

    if (conf->shares)
        return conf->shares[i];
    return (struct balancer_share){
        .weight = e->weight, .level = e->level, .max_connections = e->max_connections};
}

static bool balancer_accepts(struct balancer_share share)
{
    return share.weight <= BALANCER_MAX_WEIGHT && share.level < BALANCER_LEVELS;
}

static int balancer_check(const struct balancer_conf *conf)
{
    if (conf->n_endpoints > BALANCER_MAX_ENDPOINTS)
        return -EINVAL;
    for (unsigned i = 0; i < conf->n_endpoints; i++)
        if (!balancer_accepts(balancer_share(conf, i)))
            return -EINVAL;
    return 0;
}

/* Sort key within a level: heaviest first, or configuration order. */
static unsigned balancer_rank(const struct balancer *b, struct balancer_share share)
{
    return b->ops->in_order ? 0 : BALANCER_MAX_WEIGHT - share.weight;
}

static void balancer_set_place(struct balancer *b, unsigned place, struct endpoint *e,
                               struct balancer_share share)
{
    b->list[place] = e;
    b->loads[place] = e->load;
    b->limits[place] = share.max_connections > 0 ? share.max_connections : UINT32_MAX;
    b->weights[place] = (uint16_t)share.weight;
}

/* Stable counting sort of the endpoints whose weight is above 0. */
static void balancer_list(struct balancer *b, const struct balancer_conf *conf)
{
    unsigned starts[BALANCER_LEVELS][BALANCER_MAX_WEIGHT] = {{0}};
    unsigned at = 0;

    for (unsigned i = 0; i < conf->n_endpoints; i++) {
        struct balancer_share share = balancer_share(conf, i);

        if (share.weight > 0)
            starts[share.level][balancer_rank(b, share)]++;
    }
    for (unsigned level = 0; level < BALANCER_LEVELS; level++) {
        struct balancer_pool *pool = &b->pools[b->n_pools];

        pool->level = level;
        pool->from = at;
        for (unsigned rank = 0; rank < BALANCER_MAX_WEIGHT; rank++) {
            unsigned n = starts[level][rank];

            starts[level][rank] = at;
            at += n;
        }
        pool->n = at - pool->from;
        b->n_pools += pool->n > 0;
    }
    for (unsigned i = 0; i < conf->n_endpoints; i++) {
        struct balancer_share share = balancer_share(conf, i);

        if (share.weight > 0)
            balancer_set_place(b, starts[share.level][balancer_rank(b, share)]++,
                               conf->endpoints[i], share);
    }
    b->n = at;
}

static int balancer_find_runs(const struct balancer *b, struct balancer_pool *pool)
{
    unsigned at = pool->from, to = pool->from + pool->n;

    for (unsigned place = at; place < to; place++)
        pool->n_runs += place == at || balancer_weight(b, place) != balancer_weight(b, place - 1);
    pool->runs = calloc(pool->n_runs, sizeof(*pool->runs));
    if (!pool->runs)
        return -ENOMEM;
    for (unsigned i = 0; i < pool->n_runs; i++) {
        struct balancer_run *run = &pool->runs[i];

        *run = (struct balancer_run){.weight = balancer_weight(b, at), .from = at};
        while (at < to && balancer_weight(b, at) == run->weight)
            at++;
        run->to = at;
    }
    return 0;
}

static int balancer_fill(struct balancer *b, const struct balancer_conf *conf)
{
    size_t n = conf->n_endpoints > 0 ? conf->n_endpoints : 1;

    b->list = calloc(n, sizeof(*b->list));
    b->loads = calloc(n, sizeof(*b->loads));
    b->limits = calloc(n, sizeof(*b->limits));
    b->weights = calloc(n, sizeof(*b->weights));
    if (!b->list || !b->loads || !b->limits || !b->weights)
        return -ENOMEM;
    balancer_list(b, conf);
    if (b->n > 0)
        b->group = b->list[0]->group;
    return 0;
}

static int balancer_build_pool(const struct balancer *b, struct balancer_pool *pool)
{
    int rc;

    if (b->ops->in_order)
        return 0;
    rc = balancer_find_runs(b, pool);
    return rc == 0 && b->ops->build ? b->ops->build(b, pool) : rc;
}

int balancer_create(struct balancer **out, const struct balancer_conf *conf)
{
    struct balancer *b;
    int rc = balancer_check(conf);

    MUST((unsigned)conf->kind < ARRAY_LEN(balancer_kinds));
    if (rc < 0)
        return rc;
    b = aligned_alloc(CACHE_LINE_BYTES, sizeof(*b));
    if (!b)
        return -ENOMEM;
    *b = (struct balancer){.ops = &balancer_kinds[conf->kind],
                           .hash_balance_factor = conf->hash_balance_factor,
                           .by_address = conf->by_address,
                           .panic_threshold = conf->panic_threshold,
                           .spills = conf->spills,
                           .stays = conf->stays,
                           .is_single = conf->stays && balancer_kinds[conf->kind].in_order,
                           .in_use = BALANCER_NO_PLACE32,
                           .slow_start_ns = conf->slow_start_ns,
                           .generation = conf->generation};
    rc = balancer_fill(b, conf);
    for (unsigned i = 0; rc == 0 && i < b->n_pools; i++)
        rc = balancer_build_pool(b, &b->pools[i]);
    if (rc < 0) {
        balancer_destroy(b);
        return rc;
    }
    *out = b;
    return 0;
}

void balancer_destroy(struct balancer *b)
{
    if (!b)
        return;
    for (unsigned i = 0; i < b->n_pools; i++) {
        free(b->pools[i].table);
        free(b->pools[i].hashes);
        free(b->pools[i].owners);
        free(b->pools[i].runs);
    }
    free(b->weights);
    free(b->limits);
    free(b->loads);
    free(b->list);
    free(b);
}

uint64_t balancer_random(void)
{
    static _Atomic uint64_t threads;
    static _Thread_local uint64_t state;

    if (state == 0) /* not seeded yet */
        state = hash_mix(atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed));
    return hash_mix(state++);
}

static bool balancer_was_tried(const struct balancer_pick_state *pick, unsigned place)
{
    for (unsigned i = 0; i < pick->n_tried; i++)
        if (pick->tried[i] == place)
            return true;
    return false;
}

bool balancer_open(const struct balancer_attempt *a, unsigned place)
{
    return !(balancer_load(a->b, place) & a->unfit) && !balancer_was_tried(a->pick, place);
}

double balancer_part(const struct balancer *b, struct endpoint *e)
{
    /* Acquire: see note: flags in balance/endpoint.h. */
    uint32_t load = atomic_load_explicit(e->load, memory_order_acquire);
    int64_t since_ns = atomic_load_explicit(&e->warming_since_ns, memory_order_relaxed);
    int64_t passed_ns = clock_now_ns() - since_ns;

    if (!(load & ENDPOINT_WARMING))
        return 1;
    if (passed_ns >= b->slow_start_ns) {
        endpoint_clear_flag(e, ENDPOINT_WARMING);
        return 1;
    }
    return BALANCER_WARM_UP_FROM +
           (1 - BALANCER_WARM_UP_FROM) * (double)passed_ns / (double)b->slow_start_ns;
}

/* Hashing kinds draw by the key, so that the same client gets the same result. */
bool balancer_warmup_draw(const struct balancer_attempt *a, struct endpoint *e)
{
    uint64_t drawn =
        a->keyed ? hash_mix(a->pick->key + balancer_hash_of(a->b, e)) : balancer_random();

    return (double)(drawn >> 11) * 0x1p-53 < balancer_part(a->b, e) || !a->lottery;
}

bool balancer_takes(struct balancer_attempt *a, unsigned place)
{
    uint32_t load = balancer_load(a->b, place);

    if ((load & a->unfit) || balancer_was_tried(a->pick, place))
        return false;
    if ((load & ENDPOINT_COUNT_MASK) >= a->b->limits[place]) {
        a->busy = true;
        return false;
    }
    if ((load & ENDPOINT_WARMING) && !balancer_warmup_draw(a, a->b->list[place])) {
        a->refused = true;
        return false;
    }
    return true;
}

bool balancer_offer(struct balancer_attempt *a, unsigned place)
{
    struct endpoint *e = a->b->list[place];

    if (!balancer_takes(a, place))
        return false;
    if (endpoint_enter(e) < 0) { /* another thread took the last slot */
        a->busy = true;
        return false;
    }
    a->pick->tried[a->pick->n_tried++] = (uint16_t)place;
    a->taken = e;
    return true;
}

bool balancer_offer_warm(struct balancer_attempt *a, unsigned place)
{
    bool lottery = a->lottery, taken;

    a->lottery = false;
    taken = balancer_offer(a, place);
    a->lottery = lottery;
    return taken;
}

static bool balancer_scan(struct balancer_attempt *a, unsigned start)
{
    unsigned from = a->pool->from, n = a->pool->n;

    for (unsigned i = 0; i < n; i++)
        if (balancer_offer(a, start + i < from + n ? start + i : start + i - n))
            return true;
    return false;
}

bool balancer_try(struct balancer_attempt *a)
{
    uint64_t start;

    if (a->b->ops->choose(a))
        return true;
    a->lottery = false;
    if (a->refused && a->b->ops->choose(a))
        return true;
    start = a->keyed ? hash_mix(a->pick->key) : balancer_turn(a->b);
    return balancer_scan(a, a->pool->from + (unsigned)(start % a->pool->n));
}
