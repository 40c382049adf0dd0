/*
 * stream: writes as fast as the receiver takes them, to a sink_server (see there for what a stream
 * is). At the end the sink's receipt must name every byte that was sent. fetch: the other way, from
 * a source_server.
 */
#include "common/die.h"
#include "common/pattern.h"
#include "load/load.h"
#include "load/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { RECEIPT_LIMIT_S = 10 };

static void stream_start(struct load *load, struct conn *conn)
{
    (void)load;
    conn->begun_ns = 0; /* the seed is still to be sent */
}

static void stream_send_seed(struct load *load, struct conn *conn)
{
    ssize_t sent = wire_send(conn, &conn->seed, sizeof(conn->seed));

    if (sent < 0 && errno == EAGAIN) {
        load_want(load, conn, wire_blocked(conn));
        return;
    }
    if (sent != sizeof(conn->seed))
        load_lost(conn, "cannot send the seed");
    conn->begun_ns = load_now_ns();
    load_want(load, conn, load->mode == &load_stream ? EPOLLOUT : EPOLLIN);
    load_settle(load, conn);
}

static void stream_event(struct load *load, struct conn *conn, uint32_t events)
{
    ssize_t sent;

    (void)events; /* an error shows in send */
    if (conn->begun_ns == 0) {
        stream_send_seed(load, conn);
        return;
    }
    sent = wire_send(conn, pattern_at(conn->seed, conn->sent), load->opts.size_bytes);
    if (sent < 0 && errno == EAGAIN)
        return;
    if (sent < 0)
        load_lost(conn, "cannot send");
    conn->sent += (uint64_t)sent;
    load->bytes += (uint64_t)sent;
    load->ops++;
}

static void stream_finish(struct load *load, struct conn *conn)
{
    struct timeval limit = {.tv_sec = RECEIPT_LIMIT_S};
    uint64_t receipt_bytes;
    ssize_t sent;

    fcntl(conn->fd, F_SETFL, 0); /* blocking, from here on */
    setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    /* A TLS record may be under way: it ends with the write that began it. */
    sent = wire_send(conn, pattern_at(conn->seed, conn->sent), load->opts.size_bytes);
    if (sent < 0)
        load_lost(conn, "cannot send");
    conn->sent += (uint64_t)sent;
    wire_shutdown(conn);
    errno = 0;
    if (wire_recv(conn, &receipt_bytes, sizeof(receipt_bytes)) != sizeof(receipt_bytes))
        load_lost(conn, "no receipt");
    conn->received = receipt_bytes;
    if (conn->received != conn->sent)
        load_lost(conn, "bytes missing");
    close(conn->fd);
}

static void fetch_event(struct load *load, struct conn *conn, uint32_t events)
{
    static uint8_t buffer[PATTERN_CHUNK_BYTES];
    ssize_t got;

    (void)events;
    if (conn->begun_ns == 0) {
        stream_send_seed(load, conn);
        return;
    }
    got = wire_recv(conn, buffer, sizeof(buffer));
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0)
        load_lost(conn, "cannot receive");
    pattern_check(conn->seed, conn->received, buffer, (size_t)got);
    conn->received += (uint64_t)got;
    load->bytes += (uint64_t)got;
    load->ops++;
}

static void fetch_finish(struct load *load, struct conn *conn)
{
    (void)load;
    wire_reset(conn);
}

const struct load_mode load_stream = {.name = "stream",
                                      .interest = EPOLLOUT,
                                      .start = stream_start,
                                      .event = stream_event,
                                      .finish = stream_finish};
const struct load_mode load_fetch = {.name = "fetch",
                                     .interest = EPOLLOUT,
                                     .start = stream_start,
                                     .event = fetch_event,
                                     .finish = fetch_finish};
