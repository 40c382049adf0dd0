#include <errno.h>
#include <unistd.h>

#include "net/channel_internal.h"
#include "net/sock.h"

void channel_enter(struct channel *ch, enum channel_phase phase)
{
    MUST(ch->phase < phase && ch->phase < CHANNEL_CLOSED);
    ch->phase = (uint8_t)phase;
}

void channel_run_end(struct task *t)
{
    struct channel *ch = CONTAINER_OF(t, struct channel, end);
    struct handler *tail = ch->pipeline.tail;

    if (tail->ops->closing)
        tail->ops->closing(tail);
    hangup_leave(&channel_net(ch)->hangup, &ch->hangup);
    channel_drop_pending(ch);
    channel_linger_end(ch);
    if (ch->phase == CHANNEL_ABORTED && ch->error != -ECONNRESET) /* else reset by the peer */
        sock_close_reset(ch->io.fd);
    else
        close(ch->io.fd);
    handler_ended(ch->pipeline.head, HANDLER_CLOSED, ch->error);
}

int channel_detach(struct channel *ch)
{
    MUST(loop_is_current(channel_net(ch)->loop));
    MUST(!(ch->flags & CHANNEL_PENDING) && !ch->linger);
    channel_enter(ch, CHANNEL_CLOSED);
    channel_watch(ch);
    hangup_leave(&channel_net(ch)->hangup, &ch->hangup);
    return ch->io.fd;
}

void channel_retire(struct channel *ch, enum channel_phase phase, int error)
{
    if (channel_ended(ch))
        return;
    channel_enter(ch, phase);
    ch->error = (int16_t)error;
    channel_watch(ch);
    loop_reap(channel_net(ch)->loop, &ch->end);
}

void channel_retire_if_done(struct channel *ch)
{
    bool read = (ch->flags & CHANNEL_READ_ENDED) && !channel_input_pending(ch);

    if (channel_write_ended(ch) && (read || (ch->phase == CHANNEL_BROKEN && channel_discards(ch))))
        channel_retire(ch, CHANNEL_CLOSED, 0);
}

void channel_set_input_pending(struct channel *ch, bool pending)
{
    if (pending) {
        ch->input_pending++;
        return;
    }
    MUST(ch->input_pending > 0);
    ch->input_pending--;
    channel_retire_if_done(ch);
}

bool channel_input_pending(const struct channel *ch)
{
    return (ch->input_pending > 0 || (ch->stopped & CHANNEL_STOP_DELAY)) &&
           !(ch->flags & CHANNEL_DISCARD);
}

bool channel_input_cut(const struct channel *ch)
{
    return ch->flags & CHANNEL_INPUT_CUT;
}

static bool channel_would_lose_input(const struct channel *ch, int64_t quiet_ns)
{
    int64_t silent_ns = loop_now_ns(channel_net(ch)->loop) - ch->last_io_at_ns;

    if (channel_input_cut(ch) || channel_read_ended(ch) || channel_ended(ch))
        return false;
    return (ch->bytes_in > 0 && silent_ns < quiet_ns) || sock_has_unread(ch->io.fd);
}

void channel_discard(struct channel *ch, int64_t quiet_ns)
{
    if (channel_discards(ch))
        return;
    if (channel_input_pending(ch) || channel_would_lose_input(ch, quiet_ns))
        ch->flags |= CHANNEL_INPUT_CUT;
    ch->flags |= CHANNEL_DISCARD;
    ch->stopped = 0;
    channel_watch(ch);
    channel_retire_if_done(ch);
}

bool channel_discards(const struct channel *ch)
{
    return (ch->flags & CHANNEL_DISCARD) || channel_ended(ch);
}

static void channel_end_now(struct channel *ch)
{
    if (sock_has_unread(ch->io.fd)) { /* otherwise close(2) sends a reset, and no end of file */
        channel_shutdown_write(ch);
        channel_abort(ch, 0);
        return;
    }
    sock_skip_time_wait(ch->io.fd);
    channel_retire(ch, CHANNEL_CLOSED, 0);
}

static void channel_end_with_reset(struct channel *ch)
{
    if (channel_unsent_bytes(ch) == 0)
        channel_abort(ch, 0);
    else if (ch->phase < CHANNEL_RESETTING)
        channel_enter(ch, CHANNEL_RESETTING);
}

void channel_end(struct channel *ch, unsigned how)
{
    bool is_reset = (how & ~(unsigned)CHANNEL_END_BOUNDED) == CHANNEL_END_RESET;

    MUST(loop_is_current(channel_net(ch)->loop));
    if (channel_ended(ch))
        return;
    if (how == CHANNEL_END_NOW) {
        channel_end_now(ch);
        return;
    }
    /* a reset cuts the input, unread bytes or not: nothing has to be asked */
    if (is_reset && !(ch->flags & CHANNEL_READ_ENDED))
        ch->flags |= CHANNEL_INPUT_CUT;
    channel_discard(ch, 0);
    if (is_reset)
        channel_end_with_reset(ch);
    else if ((how & ~(unsigned)CHANNEL_END_BOUNDED) == CHANNEL_END_FLUSH)
        channel_shutdown_write(ch);
    if (!channel_ended(ch))
        channel_linger_begin(ch, how & CHANNEL_END_BOUNDED);
}

void channel_abort(struct channel *ch, int error)
{
    MUST(loop_is_current(channel_net(ch)->loop));
    if (channel_ended(ch))
        return;
    if (!(ch->flags & (CHANNEL_READ_ENDED | CHANNEL_DISCARD)))
        ch->flags |= CHANNEL_INPUT_CUT;
    channel_retire(ch, CHANNEL_ABORTED, error);
}

void channel_notice_reset(struct channel *ch)
{
    hangup_listen(&channel_net(ch)->hangup, &ch->hangup, ch->io.fd);
}

/* EPOLLHUP without an error: both halves have ended (then false), or a unix peer has closed. */
static bool channel_peer_left_silently(const struct channel *ch)
{
    return ch->bytes_in == 0 && !channel_read_ended(ch) && ch->phase != CHANNEL_EOF_SENT &&
           !sock_has_unread(ch->io.fd);
}

void channel_notice_end(struct channel *ch)
{
    channel_notice_reset(ch);
    hangup_listen_end(&channel_net(ch)->hangup, &ch->hangup);
}

static void channel_peer_ended(struct channel *ch)
{
    struct handler *tail = ch->pipeline.tail;

    if (tail->ops->end_noticed)
        tail->ops->end_noticed(tail);
}

void channel_on_hangup(struct hangup_watch *w)
{
    struct channel *ch = CONTAINER_OF(w, struct channel, hangup);
    int error;

    if (channel_ended(ch))
        return;
    error = sock_error(ch->io.fd);
    if (error == 0 && w->hung_up && channel_peer_left_silently(ch))
        error = -EPIPE;
    if (error == 0)
        channel_peer_ended(ch);
    else if (ch->flags & CHANNEL_READ_ENDED)
        channel_write_failed(ch, error);
    else
        channel_write_broken(ch, error);
}

bool channel_ended(const struct channel *ch)
{
    return ch->phase >= CHANNEL_CLOSED;
}
