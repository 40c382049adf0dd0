/* spare/spare_pace: when a loop opens spare connections to one server. */
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "spare/spare_internal.h"

/* First and longest pause after a failure; each further failure in a row doubles it. */
#define SPARE_PAUSE_NS     (100 * NS_PER_MS)
#define SPARE_PAUSE_MAX_NS (5 * NS_PER_S)

int64_t spare_pace_jitter_ns(struct spare_pool *pool, int64_t ns)
{
    uint64_t random = hash_mix(((uint64_t)pool->number << 32) + pool->drawn++);

    return ns - (int64_t)hash_reduce(random, 1u << 16) * (ns >> 18);
}

void spare_pace_arm(struct spare_list *part, int64_t at_ns)
{
    struct loop *loop = part->pool->net->loop;

    if (part->timer.state != TIMER_IDLE && part->timer.at_ns <= at_ns)
        return;
    loop_cancel(loop, &part->timer);
    loop_schedule(loop, &part->timer, at_ns - clock_now_ns());
}

void spare_pace_not_before(struct spare_list *part, int64_t at_ns)
{
    if (part->not_before_ns < at_ns)
        part->not_before_ns = at_ns;
}

/*
 * Pause after a failed or rejected attempt. An attempt begun before the end of the last pause does
 * not count; one begun soon after it doubles the pause.
 */
void spare_pace_pause(struct spare_list *part, int64_t begun_at_ns)
{
    bool in_a_row = begun_at_ns - part->paused_until_ns < SPARE_PAUSE_MAX_NS;
    int64_t pause_ns = in_a_row ? 2 * part->pause_ns : 0;

    if (begun_at_ns < part->paused_until_ns)
        return;
    pause_ns = pause_ns > SPARE_PAUSE_NS ? pause_ns : SPARE_PAUSE_NS;
    part->pause_ns = pause_ns < SPARE_PAUSE_MAX_NS ? pause_ns : SPARE_PAUSE_MAX_NS;
    part->paused_until_ns = clock_now_ns() + spare_pace_jitter_ns(part->pool, part->pause_ns);
    spare_pace_not_before(part, part->paused_until_ns);
    spare_pace_arm(part, part->not_before_ns);
}

void spare_pace_worked(struct spare *sp)
{
    upstream_connected(sp->up, sp->server);
    if (atomic_exchange(&sp->failing, false))
        log_notice("upstream %s: server %s: spare connections can be opened again", sp->up->name,
                   sp->server->name);
}
