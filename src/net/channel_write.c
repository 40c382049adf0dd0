#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/channel_internal.h"
#include "net/memory_account.h"
#include "net/sock.h"

void channel_nodelay(struct channel *ch, const struct sock_options *o)
{
    if (o->nodelay && o->nodelay_later)
        ch->flags |= CHANNEL_NODELAY_DUE;
}

void channel_set_nodelay(struct channel *ch)
{
    ch->flags &= ~CHANNEL_NODELAY_DUE;
    sock_nodelay(ch->io.fd);
}

/* Memory of buffer and pipe, charged by this file; handlers charge their own. */
static size_t channel_own_bytes(const struct channel *ch)
{
    return ch->out.cap + (ch->pipe ? SPLICE_MAX_BYTES : 0);
}

size_t channel_held_bytes(const struct channel *ch)
{
    return channel_own_bytes(ch) +
           (ch->flags & CHANNEL_HANDLERS ? pipeline_held_bytes(&ch->pipeline) : 0);
}

/* Replace the charge of ${before} bytes by the memory held now. */
static void channel_count_held(const struct channel *ch, size_t before)
{
    memory_account_charge(channel_net(ch)->buffered, before, channel_own_bytes(ch));
}

static void channel_drop_pipe(struct channel *ch)
{
    pipe_pool_put(&channel_net(ch)->pipes, ch->pipe);
    ch->pipe = NULL;
    memory_account_charge_pipe(channel_net(ch)->buffered, -SPLICE_MAX_BYTES);
}

void channel_drop_pending(struct channel *ch)
{
    size_t before = channel_own_bytes(ch);

    if (ch->pipe)
        channel_drop_pipe(ch);
    buffer_clear(&ch->out);
    ch->flags &= ~CHANNEL_PENDING;
    channel_count_held(ch, before);
}

size_t channel_pending_bytes(const struct channel *ch)
{
    return buffer_bytes(&ch->out) + (ch->pipe ? ch->pipe->bytes : 0);
}

bool channel_writable(const struct channel *ch)
{
    return !(ch->flags & (CHANNEL_UNWRITABLE | CHANNEL_WRITE_PACED));
}

static void channel_become_writable(struct channel *ch)
{
    if (!(ch->flags & CHANNEL_UNWRITABLE))
        return;
    ch->flags &= ~CHANNEL_UNWRITABLE;
    if (channel_writable(ch))
        handler_writable(ch->pipeline.head);
}

void channel_pace_writing(struct channel *ch, bool wait)
{
    bool waited = ch->flags & CHANNEL_WRITE_PACED;

    if (wait)
        ch->flags |= CHANNEL_WRITE_PACED;
    else
        ch->flags &= ~CHANNEL_WRITE_PACED;
    if (waited && channel_writable(ch) && !channel_ended(ch))
        handler_writable(ch->pipeline.head);
}

/* After EPIPE or ECONNRESET the tail handler decides how the channel ends. */
void channel_write_failed(struct channel *ch, int error)
{
    if (error == -EPIPE || error == -ECONNRESET) {
        channel_write_broken(ch, error);
    } else if (ch->phase < CHANNEL_BROKEN) {
        channel_drop_pending(ch);
        channel_abort(ch, error);
    }
}

void channel_write_broken(struct channel *ch, int error)
{
    if (ch->phase >= CHANNEL_BROKEN)
        return;
    channel_drop_pending(ch);
    channel_enter(ch, CHANNEL_BROKEN);
    ch->error = (int16_t)error;
    channel_watch(ch);
    channel_become_writable(ch);
    handler_ended(ch->pipeline.head, HANDLER_BROKEN, error);
    channel_retire_if_done(ch);
}

/* After a reset by the peer, shutdown(2) fails with ENOTCONN; input can still be read. */
static void channel_do_eof(struct channel *ch)
{
    if (shutdown(ch->io.fd, SHUT_WR) < 0) {
        int error = sock_error(ch->io.fd);

        channel_write_failed(ch, error < 0 ? error : -EPIPE);
        return;
    }
    channel_enter(ch, CHANNEL_EOF_SENT);
    channel_retire_if_done(ch);
}

/* While memory is over its limit, any pending output makes ${ch} unwritable. */
static void channel_note_pending(struct channel *ch, size_t before)
{
    channel_count_held(ch, before);
    ch->flags |= CHANNEL_PENDING;
    if (ch->pipe || channel_pending_bytes(ch) > CHANNEL_HIGH_BYTES ||
        memory_account_is_over(channel_net(ch)->buffered))
        ch->flags |= CHANNEL_UNWRITABLE;
    channel_watch(ch);
}

void channel_give_pipe(struct channel *ch, struct pipe *p)
{
    MUST(!ch->pipe && channel_own_bytes(ch) == 0);
    ch->pipe = p;
    pipe_pool_hold(&channel_net(ch)->pipes, p, ch);
    memory_account_charge_pipe(channel_net(ch)->buffered, SPLICE_MAX_BYTES);
    channel_note_pending(ch, 0);
}

static int channel_read_pipe(struct channel *ch, struct pipe *p, struct buffer *to)
{
    uint8_t *scratch = channel_net(ch)->scratch;
    int rc = 0;

    while (p->bytes > 0 && rc == 0) {
        size_t max = p->bytes < NETLOOP_SCRATCH_BYTES ? p->bytes : NETLOOP_SCRATCH_BYTES;
        ssize_t n = read(p->read_fd, scratch, max);

        if (n <= 0 && p->adopted)
            return -EIO;
        MUST(n > 0);
        p->bytes -= (size_t)n;
        rc = buffer_append(to, scratch, (size_t)n);
    }
    return rc;
}

void channel_copy_pipe(struct channel *ch)
{
    size_t before = channel_own_bytes(ch);
    struct buffer behind = ch->out;
    int rc;

    buffer_init(&ch->out);
    rc = channel_read_pipe(ch, ch->pipe, &ch->out);
    channel_drop_pipe(ch);
    if (rc == 0)
        rc = buffer_append(&ch->out, buffer_front(&behind), buffer_bytes(&behind));
    buffer_clear(&behind);
    channel_count_held(ch, before);
    if (rc < 0)
        channel_abort(ch, rc);
}

int channel_send(struct channel *ch, const void *data, size_t len)
{
    const uint8_t *rest = data;
    size_t before;
    ssize_t n;

    MUST(loop_is_current(channel_net(ch)->loop));
    if (ch->phase != CHANNEL_OPEN)
        return -EPIPE;
    if (!(ch->flags & CHANNEL_PENDING)) {
        channel_before_send(ch);
        n = sock_send(ch->io.fd, data, len);
        if (n < 0 && n != -EAGAIN) {
            channel_write_failed(ch, (int)n);
            return -EPIPE;
        }
        if (n > 0) {
            ch->bytes_out += (uint64_t)n; /* last_io_at_ns is left alone: see note: layout */
            rest += n;
            len -= (size_t)n;
        }
        if (len == 0)
            return 0;
    }
    before = channel_own_bytes(ch);
    if (buffer_append(&ch->out, rest, len) < 0) {
        channel_abort(ch, -ENOMEM);
        return -ENOMEM;
    }
    channel_note_pending(ch, before);
    return 0;
}

void channel_send_eof(struct channel *ch)
{
    if (ch->phase != CHANNEL_OPEN)
        return;
    channel_enter(ch, CHANNEL_EOF_WANTED);
    if (!(ch->flags & CHANNEL_PENDING))
        channel_do_eof(ch);
}

int channel_write(struct channel *ch, const void *data, size_t len)
{
    if (!(ch->flags & CHANNEL_HANDLERS))
        return channel_send(ch, data, len); /* straight to the socket: see note: layout */
    return handler_write(ch->pipeline.tail, data, len);
}

void channel_shutdown_write(struct channel *ch)
{
    handler_shutdown_write(ch->pipeline.tail);
}

/* Send the pipe, whose bytes are older, then `out`. Returns 0: all sent; -EAGAIN; -errno. */
static int channel_send_pending(struct channel *ch)
{
    ssize_t n;

    while (ch->pipe) {
        n = splice_pipe_out(ch, ch->pipe);
        if (n < 0)
            return (int)n;
        if (ch->pipe->bytes == 0)
            channel_drop_pipe(ch);
    }
    while (buffer_bytes(&ch->out) > 0) {
        channel_before_send(ch);
        n = sock_send(ch->io.fd, buffer_front(&ch->out), buffer_bytes(&ch->out));
        if (n < 0)
            return (int)n;
        ch->last_io_at_ns = loop_now_ns(channel_net(ch)->loop);
        ch->bytes_out += (uint64_t)n;
        buffer_consume(&ch->out, (size_t)n);
    }
    return 0;
}

void channel_flush(struct channel *ch)
{
    size_t before = channel_own_bytes(ch);
    int rc = channel_send_pending(ch);

    channel_count_held(ch, before);
    if (rc < 0 && rc != -EAGAIN) {
        channel_write_failed(ch, rc);
        return;
    }
    if (rc == 0) {
        ch->flags &= ~CHANNEL_PENDING;
        channel_watch(ch);
        if (ch->phase == CHANNEL_EOF_WANTED)
            channel_do_eof(ch);
    }
    if (!ch->pipe && channel_pending_bytes(ch) < CHANNEL_LOW_BYTES)
        channel_become_writable(ch);
}

/* CHANNEL_PENDING makes writes append to the buffer, which channel_uncork() sends. */
void channel_cork(struct channel *ch)
{
    if (ch->phase == CHANNEL_OPEN)
        ch->flags |= CHANNEL_PENDING;
}

void channel_uncork(struct channel *ch)
{
    if ((ch->flags & CHANNEL_PENDING) && ch->phase < CHANNEL_CLOSED)
        channel_flush(ch);
}

size_t channel_unsent_bytes(const struct channel *ch)
{
    int queued = 0;

    (void)ioctl(ch->io.fd, SIOCOUTQ, &queued); /* if unsupported, count only pending bytes */
    return channel_pending_bytes(ch) + (size_t)queued;
}

bool channel_can_splice_into(const struct channel *ch)
{
    return !(ch->flags & (CHANNEL_HANDLERS | CHANNEL_PENDING)) && ch->phase == CHANNEL_OPEN;
}
