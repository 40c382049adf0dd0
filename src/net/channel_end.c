/* net/channel_end: the ways a channel ends. See channel.h. */
#include <errno.h>
#include <unistd.h>

#include "net/channel_internal.h"
#include "net/sock.h"

void channel_run_end(struct task *t)
{
    struct channel *ch = CONTAINER_OF(t, struct channel, end);

    channel_drop_pending(ch);
    if ((ch->flags & CHANNEL_RESET) && ch->error != -ECONNRESET) /* a reset needs no answer */
        sock_close_reset(ch->io.fd);
    else
        close(ch->io.fd);
    handler_closed(ch->pipeline.head, ch->error);
}

void channel_end(struct channel *ch, int error)
{
    if (ch->flags & CHANNEL_ENDED)
        return;
    ch->flags |= CHANNEL_ENDED;
    ch->error = (int16_t)error;
    channel_watch(ch);
    loop_reap(channel_net(ch)->loop, &ch->end);
}

void channel_end_if_done(struct channel *ch)
{
    if ((ch->flags & (CHANNEL_READ_ENDED | CHANNEL_KEPT)) == CHANNEL_READ_ENDED &&
        !ch->read_paced && (ch->flags & (CHANNEL_WRITE_ENDED | CHANNEL_WRITE_BROKEN)))
        channel_end(ch, 0);
}

void channel_keep(struct channel *ch)
{
    ch->flags |= CHANNEL_KEPT;
}

void channel_let_go(struct channel *ch)
{
    ch->flags &= (uint16_t)~CHANNEL_KEPT;
    channel_end_if_done(ch);
}

bool channel_kept(const struct channel *ch)
{
    return ch->flags & CHANNEL_KEPT;
}

void channel_discard(struct channel *ch)
{
    ch->flags |= CHANNEL_DISCARD;
    ch->read_paced = false;
    ch->flags &= (uint16_t) ~(CHANNEL_HELD | CHANNEL_THROTTLED);
    channel_resume(ch);
}

bool channel_discards(const struct channel *ch)
{
    return ch->flags & (CHANNEL_DISCARD | CHANNEL_ENDED);
}

void channel_close(struct channel *ch)
{
    if (ch->flags & CHANNEL_ENDED)
        return;
    channel_discard(ch);
    channel_shutdown_write(ch);
    channel_end_if_done(ch);
}

void channel_close_now(struct channel *ch)
{
    MUST(loop_is_current(channel_net(ch)->loop));
    channel_end(ch, 0);
}

void channel_reset(struct channel *ch)
{
    if (ch->flags & CHANNEL_ENDED)
        return;
    if (channel_unsent_bytes(ch) == 0) {
        channel_abort(ch, 0);
        return;
    }
    ch->flags |= CHANNEL_RESET;
    channel_discard(ch);
}

void channel_finish(struct channel *ch)
{
    bool clean = (ch->flags & (CHANNEL_WRITE_ENDED | CHANNEL_RESET)) == CHANNEL_WRITE_ENDED;

    if (ch->flags & CHANNEL_ENDED)
        return;
    if (clean && channel_unsent_bytes(ch) == 0)
        channel_end(ch, 0);
    else
        channel_abort(ch, 0);
}

void channel_leave(struct channel *ch)
{
    MUST(loop_is_current(channel_net(ch)->loop));
    if (ch->flags & CHANNEL_ENDED)
        return;
    if (sock_has_unread(ch->io.fd)) { /* to close would send nothing but a reset */
        channel_shutdown_write(ch);
        channel_abort(ch, 0);
        return;
    }
    sock_forget_at_close(ch->io.fd);
    channel_end(ch, 0);
}

void channel_abort(struct channel *ch, int error)
{
    MUST(loop_is_current(channel_net(ch)->loop));
    if (ch->flags & CHANNEL_ENDED)
        return;
    ch->flags |= CHANNEL_RESET;
    channel_end(ch, error);
}

void channel_probe(struct channel *ch)
{
    int error;

    if (ch->flags & CHANNEL_ENDED)
        return;
    error = sock_error(ch->io.fd);
    if (error < 0)
        channel_abort(ch, error);
}

bool channel_ended(const struct channel *ch)
{
    return ch->flags & CHANNEL_ENDED;
}

bool channel_resetting(const struct channel *ch)
{
    return (ch->flags & (CHANNEL_RESET | CHANNEL_ENDED)) == CHANNEL_RESET;
}

bool channel_is_cut(const struct channel *ch)
{
    return (ch->flags & (CHANNEL_RESET | CHANNEL_ENDED)) == (CHANNEL_RESET | CHANNEL_ENDED);
}
