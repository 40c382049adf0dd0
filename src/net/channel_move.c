/* net/channel_move: takes a channel from one loop to another, or from process to process. */
#include <errno.h>

#include "engine/ready.h"
#include "net/channel_internal.h"
#include "net/memory_account.h"

bool channel_may_move(const struct channel *ch)
{
    return ch->phase <= CHANNEL_EOF_SENT && !ch->linger && !(ch->flags & CHANNEL_DISCARD) &&
           !channel_stopped(ch, CHANNEL_STOP_RETRY) && pipeline_may_move(&ch->pipeline);
}

int channel_leave_loop(struct channel *ch)
{
    struct netloop *net = channel_net(ch);

    MUST(loop_is_current(net->loop) && channel_may_move(ch));
    if (ch->pipe && !pipe_pool_give(&net->pipes, ch->pipe)) {
        channel_copy_pipe(ch);
        if (channel_ended(ch))
            return -ENOMEM;
    }
    pipeline_leave_loop(&ch->pipeline);
    ready_stop(net->ev, &ch->io);
    ch->watched = 0;
    hangup_leave(&net->hangup, &ch->hangup);
    ch->io.data = NULL;
    return 0;
}

void channel_join_loop(struct channel *ch, struct netloop *net)
{
    MUST(loop_is_current(net->loop) && ch->io.fd < loop_watchable_fds(net->loop) &&
         !channel_net(ch));
    ch->io.data = net;
    if (ch->pipe)
        pipe_pool_hold(&net->pipes, ch->pipe, ch);
    pipeline_join_loop(&ch->pipeline);
    channel_watch(ch);
    if (!ch->watched)
        channel_notice_reset(ch);
}

void channel_forget(struct channel *ch, struct netloop *net)
{
    MUST(!channel_net(ch));
    loop_forget_fd(net->loop, ch->io.fd);
    ev_io_set(&ch->io, ch->io.fd, 0); /* libev registers it again, even in this turn */
    if (ch->flags & CHANNEL_NODELAY_DUE)
        channel_set_nodelay(ch); /* another process does not know */
}

static enum channel_phase channel_restored_phase(const struct channel_state *st)
{
    if (st->eof_sent)
        return CHANNEL_EOF_SENT;
    return st->eof_wanted ? CHANNEL_EOF_WANTED : CHANNEL_OPEN;
}

int channel_restore(struct channel *ch, const struct channel_state *st)
{
    ch->bytes_in = st->bytes_in;
    ch->bytes_out = st->bytes_out;
    ch->last_io_at_ns = st->last_io_at_ns;
    ch->phase = (uint8_t)channel_restored_phase(st);
    if (st->read_ended)
        ch->flags |= CHANNEL_READ_ENDED;
    if (st->n_unsent == 0)
        return 0;
    if (buffer_append(&ch->out, st->unsent, st->n_unsent) < 0)
        return -ENOMEM;
    memory_account_charge(channel_net(ch)->buffered, 0, ch->out.cap);
    ch->flags |= CHANNEL_PENDING;
    if (st->unwritable)
        ch->flags |= CHANNEL_UNWRITABLE;
    return 0;
}

int channel_restore_pipe(struct channel *ch, const int *fds, size_t bytes)
{
    struct netloop *net = channel_net(ch);
    struct pipe *p;
    int rc = pipe_pool_adopt(&net->pipes, &p, fds, bytes);

    if (rc < 0)
        return rc;
    ch->pipe = p;
    pipe_pool_hold(&net->pipes, p, ch);
    memory_account_charge_pipe(net->buffered, SPLICE_MAX_BYTES);
    memory_account_charge(net->buffered, 0, SPLICE_MAX_BYTES);
    ch->flags |= CHANNEL_PENDING | CHANNEL_UNWRITABLE;
    return 0;
}

void channel_rejoin(struct channel *ch)
{
    channel_watch(ch);
    if (!ch->watched)
        channel_notice_reset(ch);
}

void channel_vanish(struct channel *ch)
{
    ch->flags |= CHANNEL_VANISHED;
    channel_retire(ch, CHANNEL_CLOSED, 0);
}

bool channel_has_vanished(const struct channel *ch)
{
    return ch->flags & CHANNEL_VANISHED;
}
