/* net/channel_move: takes a channel from one loop to another. */
#include <errno.h>

#include "engine/ready.h"
#include "net/channel_internal.h"

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
