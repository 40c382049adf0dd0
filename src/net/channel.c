/* net/channel: see channel.h. */
#include "net/channel.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sock.h"

/* Full reads in one event, by copy and by splice; then the others of the turn get theirs. */
#define CHANNEL_COPY_ROUNDS   4
#define CHANNEL_SPLICE_ROUNDS 16

enum channel_flag {
    CHANNEL_PAUSED = 1 << 0,       /* reading is paused */
    CHANNEL_READ_ENDED = 1 << 1,   /* the peer's end of file was read */
    CHANNEL_DISCARD = 1 << 2,      /* what is read is not for the pipeline any more */
    CHANNEL_PENDING = 1 << 3,      /* bytes wait to be sent */
    CHANNEL_UNWRITABLE = 1 << 4,   /* above the high water mark */
    CHANNEL_EOF_WANTED = 1 << 5,   /* end of file is to follow what waits */
    CHANNEL_WRITE_ENDED = 1 << 6,  /* our end of file was sent */
    CHANNEL_WRITE_BROKEN = 1 << 7, /* the peer takes nothing more; what it sent is still read */
    CHANNEL_RESET = 1 << 8,        /* close with a reset */
    CHANNEL_ENDED = 1 << 9,        /* closed in this turn's reap step */
    CHANNEL_HANDLERS = 1 << 10,    /* the pipeline has more than its tail */
};

#define CHANNEL_NO_WRITE                                                               \
    (CHANNEL_EOF_WANTED | CHANNEL_WRITE_ENDED | CHANNEL_WRITE_BROKEN | CHANNEL_RESET | \
     CHANNEL_ENDED)

static const struct transport *channel_transport(const struct channel *ch)
{
    return transport_table[ch->transport];
}

/* Bring the watcher in line with what the channel waits for; costs nothing when that is unchanged. */
static void channel_watch(struct channel *ch)
{
    uint8_t want = 0;

    if (!(ch->flags & (CHANNEL_PAUSED | CHANNEL_READ_ENDED | CHANNEL_ENDED)))
        want |= EV_READ;
    if ((ch->flags & (CHANNEL_PENDING | CHANNEL_ENDED)) == CHANNEL_PENDING)
        want |= EV_WRITE;
    if (want == ch->watched)
        return;
    ev_io_stop(channel_net(ch)->ev, &ch->io);
    ch->watched = want;
    if (want) {
        ev_io_modify(&ch->io, want);
        ev_io_start(channel_net(ch)->ev, &ch->io);
    }
}

static void channel_end(struct channel *ch, int error)
{
    if (ch->flags & CHANNEL_ENDED)
        return;
    ch->flags |= CHANNEL_ENDED;
    ch->error = (int16_t)error;
    channel_watch(ch);
    loop_reap(channel_net(ch)->loop, &ch->end);
}

static void channel_drop_pending(struct channel *ch)
{
    if (ch->pipe)
        pipe_pool_put(&channel_net(ch)->pipes, ch->pipe);
    ch->pipe = NULL;
    buffer_clear(&ch->out);
    ch->flags &= (uint16_t)~CHANNEL_PENDING;
}

/* The last thing that happens to a channel, in the reap step. */
static void channel_run_end(struct task *t)
{
    struct channel *ch = CONTAINER_OF(t, struct channel, end);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};

    channel_drop_pending(ch);
    if (ch->flags & CHANNEL_RESET)
        (void)setsockopt(ch->io.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(ch->io.fd);
    handler_closed(ch->pipeline.head, ch->error);
}

static const struct task_type channel_end_type = {
    .name = "channel end", .run = channel_run_end, .drop = channel_run_end};

static void channel_end_if_done(struct channel *ch)
{
    if ((ch->flags & CHANNEL_READ_ENDED) &&
        (ch->flags & (CHANNEL_WRITE_ENDED | CHANNEL_WRITE_BROKEN)))
        channel_end(ch, 0);
}

/* ---- writing ---- */

size_t channel_pending_bytes(const struct channel *ch)
{
    return buffer_bytes(&ch->out) + (ch->pipe ? ch->pipe->bytes : 0);
}

bool channel_writable(const struct channel *ch)
{
    return !(ch->flags & CHANNEL_UNWRITABLE);
}

static void channel_become_writable(struct channel *ch)
{
    if (!(ch->flags & CHANNEL_UNWRITABLE))
        return;
    ch->flags &= (uint16_t)~CHANNEL_UNWRITABLE;
    handler_writable(ch->pipeline.head);
}

/* The peer takes no more bytes; what comes of it is for the tail to decide. */
void channel_write_failed(struct channel *ch, int error)
{
    if (ch->flags & (CHANNEL_WRITE_BROKEN | CHANNEL_ENDED))
        return;
    channel_drop_pending(ch);
    if (error != -EPIPE && error != -ECONNRESET) {
        channel_abort(ch, error);
        return;
    }
    ch->flags |= CHANNEL_WRITE_BROKEN;
    ch->error = (int16_t)error;
    channel_watch(ch);
    channel_become_writable(ch);
    handler_broken(ch->pipeline.head, error);
    channel_end_if_done(ch);
}

static void channel_do_eof(struct channel *ch)
{
    if (channel_transport(ch)->shutdown_write(ch) < 0) {
        channel_abort(ch, -ECONNRESET); /* ENOTCONN: the peer's reset was faster */
        return;
    }
    ch->flags |= CHANNEL_WRITE_ENDED;
    channel_end_if_done(ch);
}

/* Something waits now that did not, or more than before. */
static void channel_note_pending(struct channel *ch)
{
    ch->flags |= CHANNEL_PENDING;
    if (ch->pipe || channel_pending_bytes(ch) > CHANNEL_HIGH_BYTES)
        ch->flags |= CHANNEL_UNWRITABLE;
    channel_watch(ch);
}

void channel_give_pipe(struct channel *ch, struct pipe *p)
{
    MUST(!ch->pipe && buffer_bytes(&ch->out) == 0);
    ch->pipe = p;
    channel_note_pending(ch);
}

int channel_send(struct channel *ch, const void *data, size_t len)
{
    const uint8_t *rest = data;
    ssize_t n;

    MUST(loop_is_current(channel_net(ch)->loop));
    if (ch->flags & CHANNEL_NO_WRITE)
        return -EPIPE;
    if (!(ch->flags & CHANNEL_PENDING)) {
        n = channel_transport(ch)->send(ch, data, len);
        if (n < 0 && n != -EAGAIN) {
            channel_write_failed(ch, (int)n);
            return -EPIPE;
        }
        if (n > 0) {
            ch->bytes_out +=
                (uint64_t)n; /* activity is noted where the bytes came from; see note: layout */
            rest += n;
            len -= (size_t)n;
        }
        if (len == 0)
            return 0;
    }
    if (buffer_append(&ch->out, rest, len) < 0) {
        channel_abort(ch, -ENOMEM);
        return -ENOMEM;
    }
    channel_note_pending(ch);
    return 0;
}

void channel_send_eof(struct channel *ch)
{
    if (ch->flags & CHANNEL_NO_WRITE)
        return;
    ch->flags |= CHANNEL_EOF_WANTED;
    if (!(ch->flags & CHANNEL_PENDING))
        channel_do_eof(ch);
}

int channel_write(struct channel *ch, const void *data, size_t len)
{
    if (!(ch->flags & CHANNEL_HANDLERS))
        return channel_send(ch, data, len); /* see note: layout */
    return handler_write(ch->pipeline.tail, data, len);
}

void channel_shutdown_write(struct channel *ch)
{
    handler_shutdown_write(ch->pipeline.tail);
}

/* Send what waits: the pipe first, it is older. 0 when all is sent; -EAGAIN; -errno. */
static int channel_send_pending(struct channel *ch)
{
    ssize_t n;

    while (ch->pipe) {
        n = splice_pipe_out(ch, ch->pipe);
        if (n < 0)
            return (int)n;
        if (ch->pipe->bytes == 0) {
            pipe_pool_put(&channel_net(ch)->pipes, ch->pipe);
            ch->pipe = NULL;
        }
    }
    while (buffer_bytes(&ch->out) > 0) {
        n = channel_transport(ch)->send(ch, buffer_front(&ch->out), buffer_bytes(&ch->out));
        if (n < 0)
            return (int)n;
        ch->last_io_at_ns = loop_now_ns(channel_net(ch)->loop);
        ch->bytes_out += (uint64_t)n;
        buffer_consume(&ch->out, (size_t)n);
    }
    return 0;
}

static void channel_flush(struct channel *ch)
{
    int rc = channel_send_pending(ch);

    if (rc < 0 && rc != -EAGAIN) {
        channel_write_failed(ch, rc);
        return;
    }
    if (rc == 0) {
        ch->flags &= (uint16_t)~CHANNEL_PENDING;
        channel_watch(ch);
        if (ch->flags & CHANNEL_EOF_WANTED)
            channel_do_eof(ch);
    }
    if (!ch->pipe && channel_pending_bytes(ch) < CHANNEL_LOW_BYTES)
        channel_become_writable(ch);
}

/* ---- reading ---- */

void channel_pause(struct channel *ch)
{
    if (ch->flags & CHANNEL_DISCARD)
        return;
    ch->flags |= CHANNEL_PAUSED;
    channel_watch(ch);
}

void channel_resume(struct channel *ch)
{
    ch->flags &= (uint16_t)~CHANNEL_PAUSED;
    channel_watch(ch);
}

/*
 * A reset that send(2) has reported looks like end of file to recv(2) afterwards: ECONNRESET tells it apart from the
 * EPIPE of a peer that had ended cleanly before it refused our bytes (tcp_reset() in Linux' net/ipv4/tcp_input.c).
 */
static void channel_on_eof(struct channel *ch)
{
    if ((ch->flags & CHANNEL_WRITE_BROKEN) && ch->error == -ECONNRESET) {
        channel_abort(ch, -ECONNRESET);
        return;
    }
    ch->flags |= CHANNEL_READ_ENDED;
    ch->last_io_at_ns = loop_now_ns(channel_net(ch)->loop);
    channel_watch(ch);
    if (!(ch->flags & CHANNEL_DISCARD))
        handler_eof(ch->pipeline.head);
    channel_end_if_done(ch);
}

static void channel_on_data(struct channel *ch, size_t n)
{
    if (n < SPLICE_WORTH_BYTES)
        ch->read_trend = 0;
    else if (ch->read_trend < SPLICE_AFTER_READS)
        ch->read_trend++;
    if (!(ch->flags & CHANNEL_DISCARD))
        handler_read(ch->pipeline.head, channel_net(ch)->scratch, n);
}

/* One read, whichever way; true when there may be more right now. */
static bool channel_read_once(struct channel *ch)
{
    bool spliced = splice_possible(ch);
    size_t room = spliced ? SPLICE_MAX_BYTES : NETLOOP_SCRATCH_BYTES;
    ssize_t n;

    if (spliced)
        n = splice_forward(ch);
    else
        n = channel_transport(ch)->recv(ch, channel_net(ch)->scratch, room);
    if (n > 0) {
        ch->last_io_at_ns = loop_now_ns(channel_net(ch)->loop);
        ch->bytes_in += (uint64_t)n;
        if (!spliced)
            channel_on_data(ch, (size_t)n);
        else if (!channel_writable(ch->splice_to))
            channel_pause(ch);
        return (size_t)n == room;
    }
    if (n == 0)
        channel_on_eof(ch);
    else if (n == -EOPNOTSUPP && spliced)
        return true; /* splice has just ruled itself out: read again, by copy */
    else if (n != -EAGAIN)
        channel_abort(ch, (int)n);
    return false;
}

static void channel_read(struct channel *ch)
{
    unsigned rounds = splice_possible(ch) ? CHANNEL_SPLICE_ROUNDS : CHANNEL_COPY_ROUNDS;

    while (channel_read_once(ch) && (ch->watched & EV_READ) && --rounds > 0)
        ;
}

/* Writes come first: they free memory. */
static void channel_on_event(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct channel *ch = CONTAINER_OF(w, struct channel, io);

    (void)ev;
    if (revents & EV_ERROR) {
        channel_abort(ch,
                      -EIO); /* libev could not watch the descriptor and has stopped the watcher */
        return;
    }
    if ((revents & EV_WRITE) && (ch->flags & CHANNEL_PENDING))
        channel_flush(ch);
    if ((revents & EV_READ) && (ch->watched & EV_READ))
        channel_read(ch);
}

/* ---- life ---- */

void channel_init(struct channel *ch, struct netloop *net, int fd)
{
    *ch = (struct channel){.transport = TRANSPORT_PLAIN, .splice_mode = SPLICE_OFF};
    ev_io_init(&ch->io, channel_on_event, fd, 0);
    ch->io.data = net;
    ch->end.type = &channel_end_type;
    ch->last_io_at_ns = loop_now_ns(net->loop);
    buffer_init(&ch->out);
}

void channel_start(struct channel *ch)
{
    MUST(loop_is_current(channel_net(ch)->loop));
    handler_active(ch->pipeline.head);
    channel_watch(ch);
}

size_t channel_unsent_bytes(const struct channel *ch)
{
    int queued = 0;

    (void)ioctl(ch->io.fd, SIOCOUTQ, &queued); /* not supported: what we hold ourselves has to do */
    return channel_pending_bytes(ch) + (size_t)queued;
}

void channel_discard(struct channel *ch)
{
    ch->flags |= CHANNEL_DISCARD;
    channel_resume(ch);
}

void channel_close(struct channel *ch)
{
    if (ch->flags & CHANNEL_ENDED)
        return;
    channel_discard(ch);
    channel_send_eof(ch);
    channel_end_if_done(ch);
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

void channel_splice_to(struct channel *ch, struct channel *dst, enum splice_mode mode)
{
    MUST(channel_net(ch) == channel_net(dst));
    ch->splice_to = dst;
    ch->splice_mode = (uint8_t)mode;
}

void channel_set_handlers(struct channel *ch, bool any)
{
    if (any)
        ch->flags |= CHANNEL_HANDLERS;
    else
        ch->flags &= (uint16_t)~CHANNEL_HANDLERS;
}

bool channel_can_splice_from(const struct channel *ch)
{
    if (ch->splice_mode == SPLICE_OFF || (ch->flags & (CHANNEL_HANDLERS | CHANNEL_DISCARD)))
        return false;
    return ch->splice_mode == SPLICE_ON || ch->read_trend >= SPLICE_AFTER_READS ||
           ch->read_trend < 0;
}

bool channel_can_splice_into(const struct channel *ch)
{
    return channel_transport(ch)->can_splice &&
           !(ch->flags & (CHANNEL_HANDLERS | CHANNEL_PENDING | CHANNEL_NO_WRITE));
}

bool channel_read_ended(const struct channel *ch)
{
    return ch->flags & CHANNEL_READ_ENDED;
}

bool channel_write_ended(const struct channel *ch)
{
    return ch->flags & CHANNEL_WRITE_ENDED;
}

bool channel_ended(const struct channel *ch)
{
    return ch->flags & CHANNEL_ENDED;
}

bool channel_resetting(const struct channel *ch)
{
    return (ch->flags & (CHANNEL_RESET | CHANNEL_ENDED)) == CHANNEL_RESET;
}
