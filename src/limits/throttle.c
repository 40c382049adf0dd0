#include "limits/throttle.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/channel.h"

/* Burst: bytes of a tenth of a second. A loop that is late by less than that loses no bandwidth. */
#define THROTTLE_BURST_PART 10

/* Grant: this part of a second's bytes (ALL: of a listener's rate), but at most one read. */
#define THROTTLE_EACH_PART   20
#define THROTTLE_ALL_PART    256
#define THROTTLE_GRANT_BYTES ((size_t)SPLICE_MAX_BYTES)

/* Shortest sleep, to limit the number of wake-ups. */
#define THROTTLE_LEAST_NS (5 * NS_PER_MS)

struct throttle {
    const struct throttle_plan *plan; /* NULL: unlimited */
    struct channel *channel;
    unsigned directions;
    size_t grant_bytes;  /* grant of the tightest limit; 0: no limit */
    size_t credit_bytes; /* reserved, not yet read */
    struct token_bucket each[THROTTLE_DIRECTIONS];
    struct timer timer; /* fires when the grant is due */
};

static struct token_bucket_conf throttle_rate(unsigned bytes)
{
    uint64_t burst = bytes / THROTTLE_BURST_PART;

    return (struct token_bucket_conf){
        .tokens = bytes, .period_ns = NS_PER_S, .burst = burst > 0 ? burst : 1};
}

/*
 * Return the smaller of ${grant} and 1/${part} of the rate ${bytes}, at most THROTTLE_GRANT_BYTES.
 * 0 means unlimited, in ${grant}, ${bytes} and the result.
 */
static size_t throttle_grant(size_t grant, unsigned bytes, unsigned part)
{
    size_t own = bytes / part > 0 ? bytes / part : 1;

    own = own < THROTTLE_GRANT_BYTES ? own : THROTTLE_GRANT_BYTES;
    return bytes > 0 && (grant == 0 || own < grant) ? own : grant;
}

static void throttle_limit_init(struct throttle_limit *limit, unsigned each, unsigned all)
{
    limit->each = throttle_rate(each);
    limit->all = throttle_rate(all);
    limit->grant_bytes = throttle_grant(0, each, THROTTLE_EACH_PART);
    limit->grant_bytes = throttle_grant(limit->grant_bytes, all, THROTTLE_ALL_PART);
}

bool throttle_plan_init(struct throttle_plan *plan, const struct throttle_conf *conf,
                        struct throttle_shared *shared)
{
    plan->shared = shared;
    throttle_limit_init(&plan->limits[0], conf->each_in, conf->all_in);
    throttle_limit_init(&plan->limits[1], conf->each_out, conf->all_out);
    return plan->limits[0].grant_bytes > 0 || plan->limits[1].grant_bytes > 0;
}

void throttle_plan_begin(const struct throttle_plan *plan, const struct throttle_plan *before,
                         int64_t now_ns)
{
    for (unsigned i = 0; i < THROTTLE_DIRECTIONS; i++)
        token_bucket_convert(&plan->shared->of[i].bucket, &before->limits[i].all,
                             &plan->limits[i].all, now_ns);
}

static bool throttle_has(const struct throttle *t, unsigned i)
{
    return t->directions & 1U << i;
}

static int64_t throttle_reserve(struct throttle *t, int64_t now_ns)
{
    int64_t wait_ns = 0;

    for (unsigned i = 0; i < THROTTLE_DIRECTIONS; i++) {
        const struct throttle_limit *limit = &t->plan->limits[i];
        int64_t each_ns, all_ns;

        if (!throttle_has(t, i))
            continue;
        each_ns = token_bucket_reserve(&t->each[i], &limit->each, t->grant_bytes, now_ns);
        all_ns = token_bucket_reserve(&t->plan->shared->of[i].bucket, &limit->all, t->grant_bytes,
                                      now_ns);
        wait_ns = each_ns > wait_ns ? each_ns : wait_ns;
        wait_ns = all_ns > wait_ns ? all_ns : wait_ns;
    }
    return wait_ns;
}

static void throttle_give_back(struct throttle *t)
{
    for (unsigned i = 0; t->credit_bytes > 0 && i < THROTTLE_DIRECTIONS; i++) {
        const struct throttle_limit *limit = &t->plan->limits[i];

        if (!throttle_has(t, i))
            continue;
        token_bucket_give_back(&t->each[i], &limit->each, t->credit_bytes);
        token_bucket_give_back(&t->plan->shared->of[i].bucket, &limit->all, t->credit_bytes);
    }
    t->credit_bytes = 0;
}

size_t throttle_allow(struct throttle *t, size_t max)
{
    struct loop *loop = channel_net(t->channel)->loop;

    MUST(loop_is_current(loop) &&
         t->timer.state == TIMER_IDLE); /* reading is paused until the timer fires */
    if (t->grant_bytes == 0)
        return max;
    if (t->credit_bytes == 0) {
        int64_t wait_ns = throttle_reserve(t, loop_now_ns(loop));

        t->credit_bytes = t->grant_bytes;
        if (wait_ns > 0) {
            loop_schedule(loop, &t->timer,
                          wait_ns > THROTTLE_LEAST_NS ? wait_ns : THROTTLE_LEAST_NS);
            return 0;
        }
    }
    return max < t->credit_bytes ? max : t->credit_bytes;
}

void throttle_took(struct throttle *t, size_t len, bool drained)
{
    if (t->grant_bytes == 0)
        return;
    MUST(len <= t->credit_bytes);
    t->credit_bytes -= len;
    if (drained)
        throttle_give_back(t);
}

static void throttle_run_timer(struct task *t)
{
    struct throttle *th = TIMER_OWNER(t, struct throttle, timer);

    channel_resume_reading(th->channel, CHANNEL_STOP_METER);
}

static const struct task_type throttle_timer_type = {.name = "bandwidth",
                                                     .run = throttle_run_timer};

/* The smallest grant of ${plan} in ${directions}; 0: no limit. */
static size_t throttle_plan_grant(const struct throttle_plan *plan, unsigned directions)
{
    size_t grant = 0;

    for (unsigned i = 0; plan && i < THROTTLE_DIRECTIONS; i++) {
        size_t own = plan->limits[i].grant_bytes;

        if (directions & 1U << i && own > 0 && (grant == 0 || own < grant))
            grant = own;
    }
    return grant;
}

int throttle_create(struct throttle **out, const struct throttle_plan *plan, struct channel *ch,
                    unsigned directions)
{
    size_t grant = throttle_plan_grant(plan, directions);
    struct throttle *t;

    *out = NULL;
    if (grant == 0)
        return 0;
    t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->plan = plan;
    t->channel = ch;
    t->directions = directions;
    t->grant_bytes = grant;
    timer_init(&t->timer, &throttle_timer_type);
    channel_meter(ch);
    *out = t;
    return 0;
}

void throttle_set(struct throttle *t, const struct throttle_plan *plan)
{
    struct loop *loop = channel_net(t->channel)->loop;

    MUST(loop_is_current(loop));
    throttle_give_back(t);
    for (unsigned i = 0; t->plan && plan && i < THROTTLE_DIRECTIONS; i++)
        token_bucket_convert(&t->each[i], &t->plan->limits[i].each, &plan->limits[i].each,
                             loop_now_ns(loop));
    t->plan = plan;
    t->grant_bytes = throttle_plan_grant(plan, t->directions);
    loop_cancel(loop, &t->timer);
    channel_resume_reading(t->channel, CHANNEL_STOP_METER);
}

void throttle_leave_loop(struct throttle *t)
{
    if (t)
        loop_suspend(channel_net(t->channel)->loop, &t->timer);
}

void throttle_join_loop(struct throttle *t)
{
    if (t)
        loop_resume(channel_net(t->channel)->loop, &t->timer);
}

void throttle_save(const struct throttle *t, int64_t *full_at_ns)
{
    for (unsigned i = 0; i < THROTTLE_DIRECTIONS; i++)
        full_at_ns[i] = t ? atomic_load_explicit(&t->each[i].full_at_ns, memory_order_relaxed) : 0;
}

void throttle_restore(struct throttle *t, const int64_t *full_at_ns)
{
    for (unsigned i = 0; t && i < THROTTLE_DIRECTIONS; i++)
        atomic_store_explicit(&t->each[i].full_at_ns, full_at_ns[i], memory_order_relaxed);
}

void throttle_destroy(struct throttle *t)
{
    if (!t)
        return;
    throttle_give_back(t);
    loop_cancel(channel_net(t->channel)->loop, &t->timer);
    free(t);
}
