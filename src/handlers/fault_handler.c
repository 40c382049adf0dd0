#include "handlers/fault_handler.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/loop.h"
#include "net/channel.h"
#include "net/memory_account.h"
#include "stats/figure.h"

/* With a rate, delayed bytes are passed on at this interval. */
#define FAULT_SLICE_NS (20 * NS_PER_MS)

struct fault_shared {
    _Atomic uint64_t connections;
    _Atomic uint64_t selected;
    _Atomic uint64_t dropped;
    _Atomic uint64_t cut;
};

struct fault_line {
    struct buffer delayed;
    struct timer timer;
    int64_t free_at_ns; /* when the rate allows the next byte */
    bool eof;           /* end of file follows the delayed bytes */
    int rejected;       /* HANDLER_REJECTED with this error follows them; 0: no */
};

struct fault_handler {
    struct handler handler;
    struct handler_context *context;
    const struct fault_handler_conf *conf;
    struct fault_shared *shared;
    uint64_t draws;
    uint64_t left; /* bytes until reset_after */
    bool dropped;
    bool over; /* discard everything: reset_after is reached, or no memory */
    struct fault_line in;
    struct fault_line out;
};

bool fault_handler_wanted(const struct fault_handler_conf *conf)
{
    return conf->delay_ns > 0 || conf->jitter_ns > 0 || conf->rate > 0 || conf->reset_after > 0 ||
           conf->drop > 0;
}

static struct fault_handler *fault_of(struct handler *h)
{
    return CONTAINER_OF(h, struct fault_handler, handler);
}

static void fault_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint32_t fault_draw(struct fault_handler *f, uint32_t n)
{
    return hash_reduce(hash_mix(f->draws++), n);
}

/* Count ${len} bytes; return how many of them pass until reset_after is reached. */
static size_t fault_take(struct fault_handler *f, size_t len)
{
    if (f->conf->reset_after == 0)
        return len;
    len = len < f->left ? len : (size_t)f->left;
    f->left -= len;
    return len;
}

static bool fault_cuts(struct fault_handler *f)
{
    if (f->over || f->conf->reset_after == 0 || f->left > 0)
        return false;
    f->over = true;
    fault_count(&f->shared->cut);
    return true;
}

static void fault_pass_in(struct fault_handler *f, const uint8_t *data, size_t len)
{
    size_t n = fault_take(f, len);

    if (n > 0)
        handler_read(f->handler.next, data, n);
    if (fault_cuts(f))
        handler_ended(f->handler.next, HANDLER_REJECTED, -EMSGSIZE);
}

static int fault_pass_out(struct fault_handler *f, const void *data, size_t len)
{
    size_t n = fault_take(f, len);
    int rc = n > 0 ? handler_write(&f->handler, data, n) : 0;

    if (fault_cuts(f))
        f->context->ops->reset(f->context, SESSION_LIMIT);
    return rc;
}

static struct memory_account *fault_buffered(const struct fault_handler *f)
{
    return channel_net(f->handler.channel)->buffered;
}

static struct loop *fault_loop(const struct fault_handler *f)
{
    return channel_net(f->handler.channel)->loop;
}

static void fault_arm(struct fault_handler *f, struct fault_line *line, int64_t delay_ns)
{
    int64_t now_ns, at_ns;

    if (line->timer.state != TIMER_IDLE)
        return;
    now_ns = clock_now_ns();
    at_ns = clock_add_ns(now_ns, delay_ns);
    if (at_ns < line->free_at_ns)
        at_ns = line->free_at_ns;
    loop_schedule(fault_loop(f), &line->timer, at_ns - now_ns);
}

static size_t fault_slice(const struct fault_handler *f, const struct fault_line *line)
{
    size_t delayed = buffer_bytes(&line->delayed);
    size_t slice = (size_t)((uint64_t)f->conf->rate * FAULT_SLICE_NS / NS_PER_S);

    if (f->conf->rate == 0 || slice >= delayed)
        return delayed;
    return slice > 0 ? slice : 1;
}

static void fault_consume(struct fault_handler *f, struct fault_line *line, size_t n)
{
    memory_account_consume(fault_buffered(f), &line->delayed, n);
    if (f->conf->rate > 0)
        line->free_at_ns =
            clock_add_ns(clock_now_ns(), (int64_t)((uint64_t)n * NS_PER_S / f->conf->rate));
    f->handler.channel->last_io_at_ns = loop_now_ns(fault_loop(f)); /* keeps the client active */
    if (buffer_bytes(&line->delayed) > 0)
        fault_arm(f, line, 0);
}

static void fault_run_in(struct task *t)
{
    struct fault_handler *f = TIMER_OWNER(t, struct fault_handler, in.timer);
    size_t n = fault_slice(f, &f->in);

    fault_pass_in(f, buffer_front(&f->in.delayed), n);
    if (f->over)
        return;
    fault_consume(f, &f->in, n);
    if (buffer_bytes(&f->in.delayed) > 0)
        return;
    if (f->in.rejected < 0)
        handler_ended(f->handler.next, HANDLER_REJECTED, f->in.rejected);
    else if (f->in.eof)
        handler_ended(f->handler.next, HANDLER_EOF, 0);
    channel_resume_reading(f->handler.channel, CHANNEL_STOP_DELAY);
}

static void fault_run_out(struct task *t)
{
    struct fault_handler *f = TIMER_OWNER(t, struct fault_handler, out.timer);
    size_t n = fault_slice(f, &f->out);
    int rc = fault_pass_out(f, buffer_front(&f->out.delayed), n);

    if (f->over || rc < 0)
        return;
    fault_consume(f, &f->out, n);
    if (buffer_bytes(&f->out.delayed) > 0)
        return;
    if (f->out.eof)
        handler_shutdown_write(&f->handler);
    else
        channel_pace_writing(f->handler.channel, false);
}

static const struct task_type fault_in_type = {.name = "fault in", .run = fault_run_in};
static const struct task_type fault_out_type = {.name = "fault out", .run = fault_run_out};

static int64_t fault_delay_ns(struct fault_handler *f)
{
    int64_t jitter_us = f->conf->jitter_ns / NS_PER_US;

    return f->conf->delay_ns + (int64_t)fault_draw(f, (uint32_t)jitter_us + 1) * NS_PER_US;
}

/* Drop here, not in fault_add(): a session cannot end before it has begun. */
static void fault_active(struct handler *h)
{
    struct fault_handler *f = fault_of(h);

    if (f->conf->drop > 0 && fault_draw(f, 100) < f->conf->drop) {
        f->dropped = true;
        fault_count(&f->shared->dropped);
        if (f->conf->drop_as == FAULT_DROP_RESET) {
            f->context->ops->abort(f->context, SESSION_LIMIT);
            return;
        }
    }
    handler_active(h->next);
}

static void fault_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct fault_handler *f = fault_of(h);

    if (f->dropped || f->over)
        return;
    if (f->conf->delay_ns == 0 && f->conf->jitter_ns == 0 && f->conf->rate == 0) {
        fault_pass_in(f, data, len);
        return;
    }
    if (memory_account_append(fault_buffered(f), &f->in.delayed, data, len) < 0) {
        f->over = true;
        f->context->ops->abort(f->context, SESSION_ERROR);
        return;
    }
    channel_stop_reading(h->channel, CHANNEL_STOP_DELAY);
    fault_arm(f, &f->in, fault_delay_ns(f));
}

/*
 * Return true to pass on end of file now. False: after the delayed input; in a dropped session
 * never.
 */
static bool fault_passes_eof(struct fault_handler *f)
{
    if (f->dropped)
        f->context->ops->end(f->context, SESSION_CLIENT_FIN);
    else
        f->in.eof = buffer_bytes(&f->in.delayed) > 0;
    return !f->dropped && !f->in.eof;
}

static void fault_close(struct fault_handler *f)
{
    loop_cancel(fault_loop(f), &f->in.timer);
    loop_cancel(fault_loop(f), &f->out.timer);
    memory_account_clear(fault_buffered(f), &f->in.delayed);
    memory_account_clear(fault_buffered(f), &f->out.delayed);
}

static void fault_ended(struct handler *h, enum handler_end what, int error)
{
    struct fault_handler *f = fault_of(h);

    if (what == HANDLER_EOF && !fault_passes_eof(f))
        return;
    if (what == HANDLER_REJECTED && buffer_bytes(&f->in.delayed) > 0) {
        f->in.rejected = error;
        return;
    }
    if (what == HANDLER_BROKEN) {
        loop_cancel(fault_loop(f), &f->out.timer);
        channel_pace_writing(h->channel, false);
    } else if (what == HANDLER_CLOSED) {
        fault_close(f);
    }
    handler_ended(h->next, what, error);
}

static int fault_write(struct handler *h, const void *data, size_t len)
{
    struct fault_handler *f = fault_of(h);

    if (f->dropped)
        return 0;
    if (f->over || f->out.eof)
        return -EPIPE;
    if (f->conf->rate == 0)
        return fault_pass_out(f, data, len);
    if (memory_account_append(fault_buffered(f), &f->out.delayed, data, len) < 0) {
        channel_abort(h->channel, -ENOMEM);
        return -ENOMEM;
    }
    channel_pace_writing(h->channel, true);
    fault_arm(f, &f->out, 0);
    return 0;
}

static void fault_shutdown_write(struct handler *h)
{
    struct fault_handler *f = fault_of(h);

    if (buffer_bytes(&f->out.delayed) > 0)
        f->out.eof = true;
    else
        handler_shutdown_write(h);
}

static size_t fault_held(const struct handler *h)
{
    const struct fault_handler *f = CONTAINER_OF(h, const struct fault_handler, handler);

    return f->in.delayed.cap + f->out.delayed.cap;
}

static void fault_leave_loop(struct handler *h)
{
    loop_suspend(fault_loop(fault_of(h)), &fault_of(h)->in.timer);
    loop_suspend(fault_loop(fault_of(h)), &fault_of(h)->out.timer);
}

static void fault_join_loop(struct handler *h)
{
    loop_resume(fault_loop(fault_of(h)), &fault_of(h)->in.timer);
    loop_resume(fault_loop(fault_of(h)), &fault_of(h)->out.timer);
}

static const struct handler_ops fault_handler_ops = {.name = "fault",
                                                     .active = fault_active,
                                                     .read = fault_read,
                                                     .ended = fault_ended,
                                                     .write = fault_write,
                                                     .shutdown_write = fault_shutdown_write,
                                                     .held = fault_held,
                                                     .leave_loop = fault_leave_loop,
                                                     .join_loop = fault_join_loop};

static void fault_add(void *state, struct channel *ch, struct handler_context *context,
                      const struct handler_step *step)
{
    const struct fault_handler_conf *conf = step->conf;
    struct fault_shared *shared = step->shared;
    struct fault_handler *f = state;
    uint64_t number = atomic_fetch_add_explicit(&shared->connections, 1, memory_order_relaxed);

    if (conf->clients.n > 0 && !cidr_any_has(conf->clients.list, conf->clients.n, context->peer))
        return;
    *f = (struct fault_handler){
        .context = context, .conf = conf, .shared = shared, .left = conf->reset_after};
    f->draws = hash_mix(conf->seed > 0 ? conf->seed : (uint64_t)clock_now_ns()) ^ number << 32;
    if (fault_draw(f, 100) >= conf->percent)
        return;
    fault_count(&shared->selected);
    buffer_init(&f->in.delayed);
    buffer_init(&f->out.delayed);
    timer_init(&f->in.timer, &fault_in_type);
    timer_init(&f->out.timer, &fault_out_type);
    pipeline_add(&ch->pipeline, &f->handler, &fault_handler_ops);
}

static const struct figure fault_rows[] = {
    FIGURE_LIVE(struct fault_shared, COUNTER, NUMBER, selected, "faults",
                "Connections with faults."),
    FIGURE_LIVE(struct fault_shared, COUNTER, NUMBER, dropped, "fault_drops",
                "Connections that were not served, by fault_drop."),
    FIGURE_LIVE(struct fault_shared, COUNTER, NUMBER, cut, "fault_resets",
                "Connections that were cut, by fault_reset_after."),
};

static const struct figure_table fault_table = {FIGURE_LIVE_TABLE(0, fault_rows)};

const struct handler_type fault_handler_type = {.name = "fault",
                                                .state_bytes = sizeof(struct fault_handler),
                                                .shared_bytes = sizeof(struct fault_shared),
                                                .add = fault_add,
                                                .figures = &fault_table};
