#include "handlers/idle_handler.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "net/address.h"
#include "net/channel.h"

#define IDLE_LOG_INTERVAL_NS (1 * NS_PER_S)

/* Polls per timeout; see note: polls. */
#define IDLE_POLLS 4

/*
 * note: polls. Reads and writes store a time stamp. This handler does not see when buffered output
 * is sent. So while output is buffered, its timer polls the channel's byte counter. If the counter
 * grew, the channel's last I/O counts as a write. If the last I/O was a read, a timeout expires up
 * to one poll late.
 */

enum idle_kind { IDLE_READ, IDLE_WRITE, IDLE_ALL, IDLE_KINDS };

struct idle_shared {
    struct log_limit log_limits[IDLE_KINDS];
};

struct idle_handler {
    struct handler handler;
    struct handler_context *context;
    const struct idle_handler_conf *conf;
    struct idle_shared *shared;
    struct timer timer;
    int64_t read_at_ns;
    int64_t write_at_ns;
    int64_t found_at_ns[IDLE_KINDS]; /* when the timeout last expired, which restarts it */
    uint64_t bytes_out;              /* the channel's counter, at the last write or poll */
    bool read_ended;
};

static struct idle_handler *idle_of(struct handler *h)
{
    return CONTAINER_OF(h, struct idle_handler, handler);
}

static struct loop *idle_loop(const struct idle_handler *idle)
{
    return channel_net(idle->handler.channel)->loop;
}

/* The end of file may still be held by another handler. */
static bool idle_read_ended(const struct idle_handler *idle)
{
    return idle->read_ended || channel_read_ended(idle->handler.channel);
}

static int64_t idle_limit_ns(const struct idle_handler *idle, enum idle_kind kind)
{
    switch (kind) {
    case IDLE_READ: return idle_read_ended(idle) ? 0 : idle->conf->read_ns;
    case IDLE_WRITE: return idle->conf->write_ns;
    case IDLE_ALL: return idle->conf->all_ns;
    case IDLE_KINDS: break;
    }
    MUST(!"a kind");
    return 0;
}

static int64_t idle_active_at_ns(const struct idle_handler *idle, enum idle_kind kind)
{
    switch (kind) {
    case IDLE_READ: return idle->read_at_ns;
    case IDLE_WRITE: return idle->write_at_ns;
    default: return clock_later(idle->read_at_ns, idle->write_at_ns);
    }
}

static int64_t idle_due_at_ns(const struct idle_handler *idle, enum idle_kind kind)
{
    int64_t from_ns = clock_later(idle_active_at_ns(idle, kind), idle->found_at_ns[kind]);
    int64_t limit_ns = idle_limit_ns(idle, kind);

    return limit_ns > 0 ? loop_due_ns(idle_loop(idle), from_ns, limit_ns) : CLOCK_NEVER;
}

/* When the next timeout, or poll of buffered output, is due. */
static int64_t idle_poll_at_ns(const struct idle_handler *idle, int64_t now_ns)
{
    bool waits = channel_pending_bytes(idle->handler.channel) > 0;
    int64_t at_ns = CLOCK_NEVER;

    for (unsigned kind = 0; kind < IDLE_KINDS; kind++) {
        int64_t limit_ns = idle_limit_ns(idle, kind);

        if (limit_ns > 0 && waits && kind != IDLE_READ)
            at_ns = clock_sooner(at_ns, clock_add_ns(now_ns, limit_ns / IDLE_POLLS));
        at_ns = clock_sooner(at_ns, idle_due_at_ns(idle, kind));
    }
    return at_ns;
}

static void idle_arm(struct idle_handler *idle, int64_t now_ns)
{
    int64_t at_ns = idle_poll_at_ns(idle, now_ns);

    if (at_ns != CLOCK_NEVER)
        loop_schedule(idle_loop(idle), &idle->timer, at_ns - clock_now_ns());
}

static void idle_poll(struct idle_handler *idle, int64_t now_ns)
{
    const struct channel *ch = idle->handler.channel;

    if (ch->bytes_out != idle->bytes_out)
        idle->write_at_ns = clock_later(idle->write_at_ns, ch->last_io_at_ns);
    idle->bytes_out = ch->bytes_out;
    if (channel_stopped(ch, CHANNEL_STOP_ANY))
        idle->read_at_ns = now_ns;
}

static void idle_log(struct idle_handler *idle, enum idle_kind kind)
{
    static const char *const what[] = {"read", "written", "read or written"};
    char peer[ADDRESS_TEXT_BYTES];
    unsigned suppressed;

    if (log_allowed(&idle->shared->log_limits[kind], IDLE_LOG_INTERVAL_NS, &suppressed))
        log_info("listen %s: client %s: idle: nothing was %s for %" PRId64 " ms%s",
                 idle->context->listener, address_format(peer, sizeof(peer), idle->context->peer),
                 what[kind], idle_limit_ns(idle, kind) / NS_PER_MS, LOG_SUPPRESSED(suppressed));
}

static void idle_judge(struct idle_handler *idle, int64_t now_ns)
{
    for (unsigned kind = 0; kind < IDLE_KINDS; kind++) {
        if (idle_due_at_ns(idle, kind) > now_ns)
            continue;
        idle->found_at_ns[kind] = now_ns;
        if (idle->conf->action == IDLE_HANDLER_LOG) {
            idle_log(idle, kind);
            continue;
        }
        idle->context->ops->time_out(idle->context, SESSION_IDLE, idle_limit_ns(idle, kind));
        return;
    }
}

static void idle_run_timer(struct task *t)
{
    struct idle_handler *idle = TIMER_OWNER(t, struct idle_handler, timer);
    int64_t now_ns = loop_heard_ns(idle_loop(idle));

    idle_poll(idle, now_ns);
    idle_judge(idle, now_ns);
    if (!channel_discards(idle->handler.channel)) /* else the channel's end has its own timeouts */
        idle_arm(idle, now_ns);
}

static const struct task_type idle_timer_type = {.name = "idle handler", .run = idle_run_timer};

static void idle_active(struct handler *h)
{
    struct idle_handler *idle = idle_of(h);

    idle->read_at_ns = idle->write_at_ns = clock_now_ns();
    idle_arm(idle, idle->read_at_ns);
    handler_active(h->next);
}

static void idle_read(struct handler *h, const uint8_t *data, size_t len)
{
    struct idle_handler *idle = idle_of(h);

    idle->read_at_ns = loop_now_ns(idle_loop(idle));
    handler_read(h->next, data, len);
}

static void idle_ended(struct handler *h, enum handler_end what, int error)
{
    struct idle_handler *idle = idle_of(h);

    if (what == HANDLER_EOF)
        idle->read_ended = true;
    else if (what == HANDLER_CLOSED)
        loop_cancel(idle_loop(idle), &idle->timer);
    handler_ended(h->next, what, error);
}

static int idle_write(struct handler *h, const void *data, size_t len)
{
    struct idle_handler *idle = idle_of(h);
    int rc = handler_write(h, data, len);

    if (h->channel->bytes_out != idle->bytes_out)
        idle->write_at_ns = loop_now_ns(idle_loop(idle));
    idle->bytes_out = h->channel->bytes_out;
    return rc;
}

static void idle_leave_loop(struct handler *h)
{
    loop_suspend(idle_loop(idle_of(h)), &idle_of(h)->timer);
}

static void idle_join_loop(struct handler *h)
{
    loop_resume(idle_loop(idle_of(h)), &idle_of(h)->timer);
}

enum { IDLE_SAVED_READ, IDLE_SAVED_WRITE, IDLE_SAVED_BYTES, IDLE_SAVED_FOUND };

_Static_assert(IDLE_SAVED_FOUND + IDLE_KINDS <= HANDLER_STATE_VALUES, "too many values");

static int idle_save(const struct handler *h, struct handler_state *st)
{
    const struct idle_handler *idle = CONTAINER_OF(h, const struct idle_handler, handler);

    st->values[IDLE_SAVED_READ] = idle->read_at_ns;
    st->values[IDLE_SAVED_WRITE] = idle->write_at_ns;
    st->values[IDLE_SAVED_BYTES] = (int64_t)idle->bytes_out;
    for (unsigned kind = 0; kind < IDLE_KINDS; kind++)
        st->values[IDLE_SAVED_FOUND + kind] = idle->found_at_ns[kind];
    return 0;
}

static int idle_restore(struct handler *h, const struct handler_state *st)
{
    struct idle_handler *idle = idle_of(h);
    int64_t now_ns = clock_now_ns();

    for (unsigned i = 0; i < HANDLER_STATE_VALUES; i++)
        if (i != IDLE_SAVED_BYTES && (st->values[i] < 0 || st->values[i] > now_ns))
            return -EINVAL;
    idle->read_at_ns = st->values[IDLE_SAVED_READ];
    idle->write_at_ns = st->values[IDLE_SAVED_WRITE];
    idle->bytes_out = (uint64_t)st->values[IDLE_SAVED_BYTES];
    for (unsigned kind = 0; kind < IDLE_KINDS; kind++)
        idle->found_at_ns[kind] = st->values[IDLE_SAVED_FOUND + kind];
    loop_cancel(idle_loop(idle), &idle->timer);
    idle_arm(idle, now_ns);
    return handler_restore_nothing(h, st);
}

static const struct handler_ops idle_ops = {.name = "idle",
                                            .active = idle_active,
                                            .read = idle_read,
                                            .ended = idle_ended,
                                            .write = idle_write,
                                            .leave_loop = idle_leave_loop,
                                            .join_loop = idle_join_loop,
                                            .save = idle_save,
                                            .restore = idle_restore};

static void idle_add(void *state, struct channel *ch, struct handler_context *context,
                     const struct handler_step *step)
{
    struct idle_handler *idle = state;

    idle->context = context;
    idle->conf = step->conf;
    idle->shared = step->shared;
    timer_init_silence(&idle->timer, &idle_timer_type);
    pipeline_add(&ch->pipeline, &idle->handler, &idle_ops);
}

const struct handler_type idle_handler_type = {.name = "idle",
                                               .state_bytes = sizeof(struct idle_handler),
                                               .shared_bytes = sizeof(struct idle_shared),
                                               .add = idle_add};
