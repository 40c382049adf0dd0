#include "check/health.h"

#include "base/clock.h"
#include "base/hash.h"

/* 2^64 / golden ratio. */
#define HEALTH_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static uint64_t health_random(struct health *h)
{
    uint64_t random = hash_mix(h->random);

    h->random += HEALTH_GOLDEN;
    return random;
}

static int64_t health_share_ns(int64_t whole_ns, uint64_t part)
{
    return (int64_t)(((unsigned __int128)(uint64_t)whole_ns * part) >> 64);
}

void health_use(struct health *h, const struct health_conf *conf)
{
    MUST(conf->rise > 0 && conf->fall > 0 && conf->interval_ns > 0 && conf->fast_interval_ns >= 0);
    h->conf = conf;
}

void health_init(struct health *h, const struct health_conf *conf, enum health_initial initial,
                 uint64_t seed, int64_t now_ns)
{
    bool is_known = initial == HEALTH_STARTS_KNOWN_UP;

    *h = (struct health){.random = seed,
                         .is_up = is_known || initial == HEALTH_STARTS_UP,
                         .is_decided = initial != HEALTH_STARTS_CHECKED,
                         .is_known = is_known,
                         .since_at_ns = now_ns};
    health_use(h, conf);
}

enum health_change health_report(struct health *h, bool passed, int64_t now_ns)
{
    bool is_first = !h->is_decided, is_unknown_up = h->is_up && !h->is_known;
    unsigned enough = h->is_up ? h->conf->fall : h->conf->rise;

    if (is_first || is_unknown_up)
        enough = 1;
    h->is_decided = h->is_known = true;
    if (passed == h->is_up) {
        h->streak = 0;
        return is_first ? HEALTH_STAYS_DOWN : HEALTH_SAME;
    }
    if (++h->streak < enough)
        return HEALTH_SAME;
    h->changed_by = h->streak;
    h->streak = 0;
    h->is_up = passed;
    h->since_at_ns = now_ns;
    return passed ? HEALTH_CAME_UP : HEALTH_WENT_DOWN;
}

int64_t health_first_ns(const struct health_conf *conf, uint64_t nth)
{
    return health_share_ns(conf->interval_ns, nth * HEALTH_GOLDEN);
}

int64_t health_interval_ns(struct health *h)
{
    const struct health_conf *conf = h->conf;
    bool fast = h->streak > 0 && conf->fast_interval_ns > 0;
    int64_t interval_ns = fast ? conf->fast_interval_ns : conf->interval_ns;
    int64_t jitter_ns = (int64_t)((__int128)interval_ns * conf->jitter_percent / 100);

    return clock_add_ns(interval_ns, health_share_ns(jitter_ns, health_random(h)));
}
