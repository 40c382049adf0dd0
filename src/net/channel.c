#include "net/channel.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/ready.h"
#include "net/channel_internal.h"
#include "net/memory_account.h"
#include "net/sock.h"

/* Limits of full reads per event, so that other channels get their turn. */
#define CHANNEL_COPY_ROUNDS   4
#define CHANNEL_SPLICE_ROUNDS 16

/* A readable descriptor counts as broken after so many events in a row without data. */
#define CHANNEL_EMPTY_READS 200

_Static_assert(SPLICE_MAX_BYTES <= NETLOOP_SCRATCH_BYTES, "what splice cannot read is copied");

void channel_watch(struct channel *ch)
{
    uint8_t want = 0;

    if (channel_reading(ch))
        want |= EV_READ;
    if ((ch->flags & CHANNEL_PENDING) && ch->phase < CHANNEL_CLOSED)
        want |= EV_WRITE;
    if (want == ch->watched)
        return;
    ready_stop(channel_net(ch)->ev, &ch->io);
    ch->watched = want;
    if (want) {
        hangup_leave(&channel_net(ch)->hangup, &ch->hangup);
        ev_io_modify(&ch->io, want);
        ev_io_start(channel_net(ch)->ev, &ch->io);
    } else if (ch->phase < CHANNEL_BROKEN) {
        channel_notice_reset(ch);
    }
}

void channel_stop_reading(struct channel *ch, unsigned why)
{
    if (ch->flags & CHANNEL_DISCARD)
        return;
    ch->stopped |= (uint8_t)why;
    channel_watch(ch);
}

void channel_resume_reading(struct channel *ch, unsigned why)
{
    unsigned before = ch->stopped;

    ch->stopped &= (uint8_t)~why;
    channel_watch(ch);
    if (before & why & CHANNEL_STOP_DELAY)
        channel_retire_if_done(ch);
}

bool channel_stopped(const struct channel *ch, unsigned why)
{
    return ch->stopped & why;
}

void channel_meter(struct channel *ch)
{
    ch->flags |= CHANNEL_METERED;
}

static bool channel_metered(const struct channel *ch)
{
    return (ch->flags & (CHANNEL_METERED | CHANNEL_DISCARD)) == CHANNEL_METERED;
}

static size_t channel_allowed(struct channel *ch, size_t max)
{
    size_t n = ch->pipeline.tail->ops->allow(ch->pipeline.tail, max);

    if (n == 0)
        channel_stop_reading(ch, CHANNEL_STOP_METER);
    return n;
}

void channel_end_input(struct channel *ch, struct handler *next)
{
    MUST(loop_is_current(channel_net(ch)->loop));
    if (channel_read_ended(ch) || channel_discards(ch))
        return;
    ch->flags |= CHANNEL_READ_ENDED;
    handler_ended(next, HANDLER_EOF, 0);
    channel_retire_if_done(ch);
    channel_watch(ch);
}

/*
 * After a reset, recv(2) returns end of file once send(2) has reported the reset, as ECONNRESET. If
 * the peer's end of file came before the reset, send(2) reports EPIPE (tcp_reset(), Linux
 * net/ipv4/tcp_input.c).
 */
static void channel_on_eof(struct channel *ch)
{
    if (ch->phase == CHANNEL_BROKEN && ch->error != -EPIPE) {
        channel_abort(ch, ch->error);
        return;
    }
    ch->last_io_at_ns = loop_now_ns(channel_net(ch)->loop);
    if (!(ch->flags & CHANNEL_DISCARD)) {
        channel_end_input(ch, ch->pipeline.head);
        return;
    }
    ch->flags |= CHANNEL_READ_ENDED;
    channel_retire_if_done(ch);
    channel_watch(ch);
}

static void channel_on_data(struct channel *ch, size_t n)
{
    if (ch->flags & CHANNEL_DISCARD) {
        ch->flags |= CHANNEL_INPUT_CUT;
        return;
    }
    if (n < SPLICE_WORTH_BYTES)
        ch->read_trend = 0;
    else if (ch->read_trend < SPLICE_AFTER_READS)
        ch->read_trend++;
    handler_read(ch->pipeline.head, channel_net(ch)->scratch, n);
}

/*
 * Return how much to read: little when memory is scarce, because a slow receiver may leave all of
 * it buffered.
 */
static size_t channel_read_size(bool spliced, bool scarce)
{
    if (scarce)
        return BUFFER_FIRST_BYTES;
    return spliced ? SPLICE_MAX_BYTES : NETLOOP_SCRATCH_BYTES;
}

/*
 * note: urgent data. splice(2) never passes a TCP urgent byte: it returns EAGAIN, or 0 after end of
 * file, although bytes are readable (tcp_read_sock(), Linux net/ipv4/tcp.c). recv(2) passes it. So
 * EAGAIN of splice(2) counts only if a read of the same event moved bytes; otherwise, and after 0,
 * recv(2) decides.
 */
static ssize_t channel_receive(struct channel *ch, size_t size, bool *spliced, bool first)
{
    if (*spliced) {
        ssize_t n = splice_forward(ch, size);

        if (n > 0 || (n == -EAGAIN && !first) || (n < 0 && n != -EAGAIN && n != -EOPNOTSUPP))
            return n;
        *spliced = false;
    }
    return sock_recv(ch->io.fd, channel_net(ch)->scratch, size);
}

static void channel_count_empty_read(struct channel *ch)
{
    static struct log_limit limit;
    char text[ADDRESS_TEXT_BYTES];
    struct address peer;
    unsigned suppressed;

    if (++ch->empty_reads < CHANNEL_EMPTY_READS)
        return;
    if (log_allowed(&limit, NS_PER_S, &suppressed))
        log_warning("connection with %s: reset: fd %d is readable, but %u reads returned nothing%s",
                    sock_peer(&peer, ch->io.fd) == 0 ? address_format(text, sizeof(text), &peer)
                                                     : "an unknown peer",
                    ch->io.fd, CHANNEL_EMPTY_READS, LOG_SUPPRESSED(suppressed));
    channel_abort(ch, -EIO);
}

/* Read once; true if more input may be waiting. ${first}: first read of this event. */
static bool channel_read_once(struct channel *ch, bool first)
{
    bool scarce = memory_account_is_over(channel_net(ch)->buffered);
    bool spliced = !scarce && splice_possible(ch);
    size_t size = channel_read_size(spliced, scarce);
    bool metered = channel_metered(ch);
    ssize_t n;

    if (metered && (size = channel_allowed(ch, size)) == 0)
        return false;
    n = channel_receive(ch, size, &spliced, first);
    if (metered)
        ch->pipeline.tail->ops->took(ch->pipeline.tail, n > 0 ? (size_t)n : 0, n < (ssize_t)size);
    if (n > 0) {
        ch->empty_reads = 0;
        ch->last_io_at_ns = loop_now_ns(channel_net(ch)->loop);
        ch->bytes_in += (uint64_t)n;
        if (!spliced)
            channel_on_data(ch, (size_t)n);
        else if (!channel_writable(ch->splice_to))
            channel_stop_reading(ch, CHANNEL_STOP_RECEIVER);
        return (size_t)n == size;
    }
    if (n == 0)
        channel_on_eof(ch);
    else if (n != -EAGAIN)
        channel_abort(ch, (int)n);
    else if (first)
        channel_count_empty_read(ch);
    return false;
}

static void channel_read(struct channel *ch)
{
    unsigned rounds = splice_possible(ch) ? CHANNEL_SPLICE_ROUNDS : CHANNEL_COPY_ROUNDS;
    bool first = true;

    while (channel_read_once(ch, first) && (ch->watched & EV_READ) && --rounds > 0)
        first = false;
}

/* Write before reading: writing frees memory. */
static inline void channel_serve(struct channel *ch, int revents)
{
    loop_set_activity(channel_net(ch)->loop, ch->pipeline.head->ops->name);
    if ((revents & EV_WRITE) && (ch->flags & CHANNEL_PENDING))
        channel_flush(ch);
    if ((revents & EV_READ) && (ch->watched & EV_READ))
        channel_read(ch);
}

static __attribute__((noinline)) void channel_serve_timed(struct channel *ch, int revents)
{
    struct event_timing *timing = &channel_net(ch)->timing;
    int64_t began_at_ns = event_load_begin(timing);

    channel_serve(ch, revents);
    if (began_at_ns > 0)
        event_load_end(timing, began_at_ns, &ch->load);
}

static void channel_on_event(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct channel *ch = CONTAINER_OF(w, struct channel, io);

    if (!ready_in_order(ev, w, revents))
        return;
    if (revents & EV_ERROR) {
        channel_abort(ch, -ENOMEM); /* libev stopped the watcher */
        return;
    }
    if (__builtin_expect(event_load_is_asked(&channel_net(ch)->timing), 0))
        channel_serve_timed(ch, revents);
    else
        channel_serve(ch, revents);
}

static const struct task_type channel_end_type = {
    .name = "channel end", .run = channel_run_end, .drop = channel_run_end};

static const struct channel_linger_conf channel_linger_defaults = {.timeout_ns = 30 * NS_PER_S,
                                                                   .max_ns = 60 * NS_PER_S};

void channel_init(struct channel *ch, struct netloop *net, int fd)
{
    *ch = (struct channel){.splice_mode = SPLICE_OFF, .linger_conf = &channel_linger_defaults};
    ev_io_init(&ch->io, channel_on_event, fd, 0);
    ch->io.data = net;
    ch->end.type = &channel_end_type;
    hangup_watch_init(&ch->hangup, channel_on_hangup);
    ch->last_io_at_ns = loop_now_ns(net->loop);
    buffer_init(&ch->out);
}

void channel_start(struct channel *ch)
{
    MUST(loop_is_current(channel_net(ch)->loop));
    handler_active(ch->pipeline.head);
    channel_watch(ch);
}

void channel_splice_to(struct channel *ch, struct channel *dst, enum splice_mode mode)
{
    MUST(channel_net(ch) == channel_net(dst));
    ch->splice_to = dst;
    ch->splice_mode = mode & 3;
}

void channel_set_handlers(struct channel *ch, bool any)
{
    if (any)
        ch->flags |= CHANNEL_HANDLERS;
    else
        ch->flags &= ~CHANNEL_HANDLERS;
}

bool channel_can_splice_from(const struct channel *ch)
{
    if (ch->splice_mode == SPLICE_OFF || (ch->flags & (CHANNEL_HANDLERS | CHANNEL_DISCARD)))
        return false;
    return ch->splice_mode == SPLICE_ON || ch->read_trend >= SPLICE_AFTER_READS ||
           ch->read_trend < 0;
}

bool channel_read_ended(const struct channel *ch)
{
    return ch->flags & CHANNEL_READ_ENDED;
}

bool channel_write_ended(const struct channel *ch)
{
    return ch->phase == CHANNEL_EOF_SENT || ch->phase >= CHANNEL_BROKEN;
}
