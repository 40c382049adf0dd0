/*
 * service/proxy_retry: pauses after failures, then tries all servers again.
 *
 * Pauses begin short, for servers that restart, and double, with jitter. If the retry budget
 * (balance/retry_budget) is empty, the session pauses again.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "engine/loop.h"
#include "service/proxy_internal.h"
#include "upstream/upstream.h"

#define PROXY_PAUSE_FIRST_NS (50 * NS_PER_MS)
#define PROXY_PAUSE_MAX_NS   (1 * NS_PER_S)

struct proxy_pause {
    struct timer timer;
    struct proxy *proxy;
    int64_t next_ns; /* next pause, before jitter */
    uint64_t random;
};

/* Schedule the end of a pause. False: too late for retry_until_ns. */
static bool proxy_pause_schedule(struct proxy_pause *pause, int64_t now_ns)
{
    int64_t base_ns = pause->next_ns;
    int64_t jitter_ns = (int64_t)(hash_mix(pause->random++) % (uint64_t)base_ns);
    int64_t pause_ns = base_ns / 2 + jitter_ns;

    if (clock_add_ns(now_ns, pause_ns) >= pause->proxy->retry_until_ns)
        return false;
    pause->next_ns = base_ns * 2 < PROXY_PAUSE_MAX_NS ? base_ns * 2 : PROXY_PAUSE_MAX_NS;
    loop_schedule(loop_current(), &pause->timer, pause_ns);
    return true;
}

static void proxy_run_pause(struct task *task)
{
    struct proxy_pause *pause = TIMER_OWNER(task, struct proxy_pause, timer);
    struct proxy *p = pause->proxy;
    int64_t now_ns = clock_now_ns();

    if (retry_budget_take(&proxy_upstream(p)->retry_budget, now_ns))
        proxy_try_again(p);
    else if (!proxy_pause_schedule(pause, now_ns))
        session_abort(&p->session, p->reason);
}

static const struct task_type proxy_pause_type = {.name = "retry", .run = proxy_run_pause};

static struct proxy_pause *proxy_new_pause(struct proxy *p, int64_t now_ns)
{
    struct proxy_pause *pause = malloc(sizeof(*pause));

    if (!pause)
        return NULL;
    *pause = (struct proxy_pause){.proxy = p, .next_ns = PROXY_PAUSE_FIRST_NS};
    pause->random = hash_mix((uint64_t)(uintptr_t)p) ^ (uint64_t)now_ns;
    timer_init(&pause->timer, &proxy_pause_type);
    return pause;
}

bool proxy_pause(struct proxy *p)
{
    const struct upstream_conf *conf = proxy_upstream(p)->conf;
    int64_t now_ns = clock_now_ns();

    if (!p->has_failed || conf->retries == 0 || conf->retry_budget == 0)
        return false;
    if (!p->pause)
        p->pause = proxy_new_pause(p, now_ns);
    return p->pause && proxy_pause_schedule(p->pause, now_ns);
}

void proxy_end_pause(struct proxy *p)
{
    if (!p->pause)
        return;
    loop_cancel(p->session.owner->net->loop, &p->pause->timer);
    free(p->pause);
    p->pause = NULL;
}
