/*
 * net/channel_linger: the timer of channel_end(), which waits for the peer.
 *
 * Bytes are acknowledged when sent and no longer in the kernel (SIOCOUTQ). The kernel reports no
 * event for this, so a timer polls, less often without progress.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/channel_internal.h"

#define CHANNEL_LINGER_FIRST_NS (20 * NS_PER_MS)
#define CHANNEL_LINGER_LAST_NS  (1 * NS_PER_S)

/* How long to wait for the peer's end of file (nginx: lingering_timeout). */
#define CHANNEL_LINGER_EOF_NS (5 * NS_PER_S)

struct channel_linger {
    struct timer timer;
    struct channel *channel;
    int64_t interval_ns;
    int64_t progress_at_ns; /* time of the last acknowledgement */
    int64_t give_up_at_ns;  /* CLOCK_NEVER: unbounded */
    uint64_t acknowledged_bytes;
};

static uint64_t channel_acknowledged_bytes(const struct channel *ch, size_t unsent)
{
    return ch->bytes_out + channel_pending_bytes(ch) - unsent;
}

/* When to give up if no more bytes are acknowledged. */
static int64_t channel_linger_deadline_ns(const struct channel_linger *l, size_t unsent)
{
    int64_t timeout_ns = l->channel->linger_conf->timeout_ns;
    int64_t at_ns;

    if (unsent == 0 && (timeout_ns == 0 || timeout_ns > CHANNEL_LINGER_EOF_NS))
        timeout_ns = CHANNEL_LINGER_EOF_NS;
    at_ns = timeout_ns > 0
                ? loop_due_ns(channel_net(l->channel)->loop, l->progress_at_ns, timeout_ns)
                : CLOCK_NEVER;
    return at_ns < l->give_up_at_ns ? at_ns : l->give_up_at_ns;
}

static void channel_linger_arm(struct channel_linger *l, int64_t now_ns, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - now_ns;

    loop_cancel(channel_net(l->channel)->loop, &l->timer);
    loop_schedule(channel_net(l->channel)->loop, &l->timer,
                  left_ns < l->interval_ns ? left_ns : l->interval_ns);
}

static void channel_linger_over(struct channel *ch, size_t unsent)
{
    if (unsent == 0 && ch->phase == CHANNEL_RESETTING)
        channel_abort(ch, 0);
    else if (unsent == 0 && ch->phase == CHANNEL_EOF_SENT)
        channel_retire(ch, CHANNEL_CLOSED, 0);
    else
        channel_abort(ch, -ETIMEDOUT);
}

static void channel_linger_check(struct channel_linger *l)
{
    struct channel *ch = l->channel;
    size_t unsent = channel_unsent_bytes(ch);
    uint64_t acknowledged_bytes = channel_acknowledged_bytes(ch, unsent);
    int64_t now_ns = clock_now_ns(), deadline_ns;

    l->interval_ns =
        2 * l->interval_ns < CHANNEL_LINGER_LAST_NS ? 2 * l->interval_ns : CHANNEL_LINGER_LAST_NS;
    if (acknowledged_bytes != l->acknowledged_bytes) {
        l->acknowledged_bytes = acknowledged_bytes;
        l->progress_at_ns = now_ns;
        l->interval_ns = CHANNEL_LINGER_FIRST_NS;
    }
    deadline_ns = channel_linger_deadline_ns(l, unsent);
    if (now_ns >= deadline_ns || (unsent == 0 && ch->phase == CHANNEL_RESETTING))
        channel_linger_over(ch, unsent);
    else
        channel_linger_arm(l, now_ns, deadline_ns);
}

static void channel_linger_run(struct task *t)
{
    struct channel_linger *l = TIMER_OWNER(t, struct channel_linger, timer);

    channel_linger_check(l);
}

static void channel_linger_drop(struct task *t)
{
    channel_abort(TIMER_OWNER(t, struct channel_linger, timer)->channel, 0);
}

static const struct task_type channel_linger_type = {
    .name = "channel linger", .run = channel_linger_run, .drop = channel_linger_drop};

static int channel_linger_create(struct channel *ch, int64_t now_ns)
{
    struct channel_linger *l = malloc(sizeof(*l));

    if (!l)
        return -ENOMEM;
    *l = (struct channel_linger){
        .channel = ch, .progress_at_ns = now_ns, .give_up_at_ns = CLOCK_NEVER};
    l->acknowledged_bytes = channel_acknowledged_bytes(ch, channel_unsent_bytes(ch));
    timer_init_silence(&l->timer, &channel_linger_type);
    ch->linger = l;
    return 0;
}

void channel_linger_begin(struct channel *ch, bool bounded)
{
    int64_t now_ns = clock_now_ns(), max_ns = ch->linger_conf->max_ns;
    struct channel_linger *l;

    if (!ch->linger && channel_linger_create(ch, now_ns) < 0) {
        channel_abort(ch, -ENOMEM);
        return;
    }
    l = ch->linger;
    if (bounded && max_ns > 0 && l->give_up_at_ns == CLOCK_NEVER)
        l->give_up_at_ns = clock_add_ns(now_ns, max_ns);
    l->interval_ns = CHANNEL_LINGER_FIRST_NS;
    channel_linger_arm(l, now_ns, l->give_up_at_ns);
}

void channel_linger_end(struct channel *ch)
{
    if (!ch->linger)
        return;
    loop_cancel(channel_net(ch)->loop, &ch->linger->timer);
    free(ch->linger);
    ch->linger = NULL;
}
