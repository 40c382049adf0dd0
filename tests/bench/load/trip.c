/*
 * trip: the modes made of round trips: a message goes out, the same bytes must come back. They
 * differ in what follows: pingpong begins the next trip, pace does when it is due, churn resets the
 * connection and opens it again, idle leaves the connection alone.
 */
#include "common/net.h"
#include "common/pattern.h"
#include "load/load.h"
#include "load/wire.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void trip_send(struct load *load, struct conn *conn)
{
    while (conn->sent < conn->end) {
        uint64_t left = conn->end - conn->sent;
        size_t len = left < PATTERN_CHUNK_BYTES ? (size_t)left : PATTERN_CHUNK_BYTES;
        ssize_t sent = wire_send(conn, pattern_at(conn->seed, conn->sent), len);

        if (sent < 0 && errno == EAGAIN) {
            load_want(load, conn, wire_blocked(conn));
            return;
        }
        if (sent < 0)
            load_lost(conn, "cannot send");
        conn->sent += (uint64_t)sent;
    }
    load_want(load, conn, EPOLLIN);
}

static void trip_start(struct load *load, struct conn *conn)
{
    conn->end += load->opts.size_bytes;
    conn->begun_ns = load_now_ns();
    trip_send(load, conn);
}

static void trip_count(struct load *load, struct conn *conn)
{
    load->ops++;
    load->bytes += load->opts.size_bytes;
    histogram_add(&load->latency, load_now_ns() - conn->begun_ns);
    load_settle(load, conn);
}

static bool trip_receive(struct conn *conn)
{
    static uint8_t buffer[PATTERN_CHUNK_BYTES];
    ssize_t got = wire_recv(conn, buffer, sizeof(buffer));

    if (got < 0 && errno == EAGAIN)
        return false;
    if (got == 0)
        errno = 0;
    if (got <= 0)
        load_lost(conn, "cannot receive");
    pattern_check(conn->seed, conn->received, buffer, (size_t)got);
    conn->received += (uint64_t)got;
    if (conn->received > conn->end)
        load_lost(conn, "more came back than was sent");
    return conn->received == conn->end;
}

/* True when the trip is over. */
static bool trip_event(struct load *load, struct conn *conn, uint32_t events)
{
    if (conn->sent < conn->end)
        trip_send(load, conn);
    if (!(events & ~(uint32_t)EPOLLOUT) || !trip_receive(conn))
        return false;
    trip_count(load, conn);
    return true;
}

static void pingpong_event(struct load *load, struct conn *conn, uint32_t events)
{
    if (trip_event(load, conn, events))
        trip_start(load, conn);
}

/* The latency of a churn trip begins with connect: load_open calls trip_start at once. */
static void churn_event(struct load *load, struct conn *conn, uint32_t events)
{
    if (!trip_event(load, conn, events))
        return;
    wire_reset(conn);
    load_open(load, conn);
}

static void pace_event(struct load *load, struct conn *conn, uint32_t events)
{
    trip_event(load, conn, events);
}

/* A connection that is late begins at once, and its latency counts from when it was due. */
static uint64_t pace_tick(struct load *load, uint64_t now_ns)
{
    uint64_t step_ns = 1000000000 / load->opts.rate;
    uint64_t next_ns = UINT64_MAX;

    if (load->phase < LOAD_WARMUP)
        return next_ns;
    for (unsigned i = 0; i < load->opts.connections; i++) {
        struct conn *conn = &load->conns[i];

        if (conn->due_ns == 0)
            conn->due_ns = now_ns + i * step_ns;
        if (conn->received < conn->end)
            continue;
        if (conn->due_ns <= now_ns) {
            trip_start(load, conn);
            conn->begun_ns = conn->due_ns;
            conn->due_ns += load->opts.connections * step_ns;
        } else if (conn->due_ns < next_ns) {
            next_ns = conn->due_ns;
        }
    }
    return next_ns;
}

static void idle_event(struct load *load, struct conn *conn, uint32_t events)
{
    trip_event(load, conn, events);
}

const struct load_mode load_pingpong = {
    .name = "pingpong", .interest = EPOLLIN, .start = trip_start, .event = pingpong_event};
const struct load_mode load_pace = {.name = "pace",
                                    .interest = EPOLLIN,
                                    .start = trip_start,
                                    .event = pace_event,
                                    .tick = pace_tick};
const struct load_mode load_churn = {
    .name = "churn", .interest = EPOLLIN, .start = trip_start, .event = churn_event};
const struct load_mode load_idle = {
    .name = "idle", .interest = EPOLLIN, .start = trip_start, .event = idle_event};
