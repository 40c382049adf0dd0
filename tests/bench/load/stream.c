/*
 * stream: writes as fast as the receiver takes them, to a sink_server (see there for what a stream
 * is). At the end the sink's receipt must name every byte that was sent.
 */
#include "common/die.h"
#include "common/pattern.h"
#include "load/load.h"

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
    if (send(conn->fd, &conn->seed, sizeof(conn->seed), MSG_NOSIGNAL) != sizeof(conn->seed))
        load_lost(conn, "cannot send the seed");
    conn->begun_ns = load_now_ns();
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
    sent = send(conn->fd, pattern_at(conn->seed, conn->sent), load->opts.size_bytes, MSG_NOSIGNAL);
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

    (void)load;
    fcntl(conn->fd, F_SETFL, 0); /* blocking, from here on */
    setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    shutdown(conn->fd, SHUT_WR);
    errno = 0;
    if (recv(conn->fd, &receipt_bytes, sizeof(receipt_bytes), MSG_WAITALL) != sizeof(receipt_bytes))
        load_lost(conn, "no receipt");
    conn->received = receipt_bytes;
    if (conn->received != conn->sent)
        load_lost(conn, "bytes missing");
    close(conn->fd);
}

const struct load_mode load_stream = {.name = "stream",
                                      .interest = EPOLLOUT,
                                      .start = stream_start,
                                      .event = stream_event,
                                      .finish = stream_finish};
