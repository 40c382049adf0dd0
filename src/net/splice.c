#include "net/splice.h"

#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "engine/budget.h"
#include "net/channel_internal.h"

bool splice_possible(const struct channel *ch)
{
    return channel_can_splice_from(ch) && channel_can_splice_into(ch->splice_to);
}

static ssize_t splice_once(int from_fd, int to_fd, size_t len)
{
    ssize_t n;

    do
        n = splice(from_fd, NULL, to_fd, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Two small splices in a row end splicing. */
static void splice_note_size(struct channel *ch, ssize_t n)
{
    if (n >= SPLICE_WORTH_BYTES)
        ch->read_trend = SPLICE_AFTER_READS;
    else if (ch->read_trend > 0)
        ch->read_trend = -1;
    else
        ch->read_trend = 0;
}

/*
 * splice(2) sends a pipe in parts. If the peer's reset comes between two of them, it returns what
 * it has sent, and has taken the error from the socket (splice_to_socket(), Linux fs/splice.c):
 * from then on sends fail with EPIPE, and reads return end of file. So an EPIPE right after a
 * splice that was cut short stands for a reset.
 */
static ssize_t splice_part_out(struct channel *ch, struct pipe *p)
{
    ssize_t n = splice_once(p->read_fd, ch->io.fd, p->bytes);

    if (n == -EPIPE && p->cut_short)
        n = -ECONNRESET;
    p->cut_short = n > 0 && (size_t)n < p->bytes;
    return n;
}

ssize_t splice_pipe_out(struct channel *ch, struct pipe *p)
{
    ssize_t n;

    channel_before_send(ch);
    n = splice_part_out(ch, p);
    if ((n == 0 || n == -EAGAIN) && pipe_pool_is_drained(p))
        return -EIO; /* else its bytes would be waited for */
    if (n <= 0)
        return n < 0 ? n : -EAGAIN;
    p->bytes -= (size_t)n;
    ch->bytes_out += (uint64_t)n;
    ch->last_io_at_ns = loop_now_ns(channel_net(ch)->loop);
    return n;
}

static void splice_deliver(struct channel *ch, struct channel *dst, struct pipe *p)
{
    ssize_t n = splice_pipe_out(dst, p);

    if (n == -EINVAL || n == -EOPNOTSUPP) { /* ${dst} does not support splice(2) */
        ch->splice_mode = SPLICE_OFF;
        channel_give_pipe(dst, p);
        channel_copy_pipe(dst);
    } else if (n < 0 && n != -EAGAIN) {
        pipe_pool_put(&channel_net(dst)->pipes, p);
        channel_write_failed(dst, (int)n);
    } else if (p->bytes > 0) {
        channel_give_pipe(dst, p);
    } else {
        pipe_pool_put(&channel_net(dst)->pipes, p);
    }
}

ssize_t splice_forward(struct channel *ch, size_t max)
{
    struct channel *dst = ch->splice_to;
    struct pipe *p;
    ssize_t n;

    if (pipe_pool_get(&channel_net(ch)->pipes, &p) < 0) {
        ch->read_trend = 0; /* no pipe: copy, and try again after more large reads */
        return -EOPNOTSUPP;
    }
    n = splice_once(ch->io.fd, p->write_fd, max);
    if (n <= 0) {
        pipe_pool_put(&channel_net(ch)->pipes, p);
        if (n == -EINVAL || n == -EOPNOTSUPP) {
            ch->splice_mode = SPLICE_OFF;
            return -EOPNOTSUPP;
        }
        return n;
    }
    p->bytes = (size_t)n;
    p->cut_short = false;
    splice_note_size(ch, n);
    splice_deliver(ch, dst, p);
    return n;
}

bool splice_give_back_pipes(struct netloop *net, unsigned max)
{
    struct budget step;
    struct pipe *p;

    budget_begin_step(&step, clock_now_ns(), BUDGET_STEP_NS, max);
    while ((p = pipe_pool_first_lent(&net->pipes))) {
        channel_copy_pipe(p->holder);
        if (budget_step_over(&step, true))
            break;
    }
    pipe_pool_trim(&net->pipes);
    return !pipe_pool_first_lent(&net->pipes);
}
