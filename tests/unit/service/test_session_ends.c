/*
 * service/session, the table of ends in DESIGN.md: how it ends x where the bytes are x what their
 * receiver does x the direction. Rule: bytes that were taken are delivered as long as the receiver
 * takes them; what is cut is seen as cut.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "service/session_internal.h"
#include "support/executor_runner.h"
#include "support/loop_runner.h"
#include "support/proxied.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define STEP_BYTES 8192       /* one segment: it is read, or spliced, at once */
#define MOST_BYTES (16 << 20) /* more than kernels take */

enum row { ENDS, RESETS, ENDS_AND_REFUSES, TIMEOUT_QUIET, TIMEOUT_BUSY, STOPS, ROWS };
enum place { IN_KERNEL, IN_BUFFER, IN_PIPE, IN_HANDLER, PLACES };
enum receiver { READS, STALLS, HALF_CLOSED, CLOSED, RECEIVERS };

struct cell {
    enum row row;
    enum place place;
    enum receiver receiver;
    unsigned from; /* the leg that the bytes come from */
};

static struct executor *executor;
static int ends[SESSION_LEGS]; /* the client's and the server's socket */

static void setup(void)
{
    proxied_enter_with_server();
    executor = NULL;
    ends[0] = ends[1] = -1;
}

static void drop(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void teardown(void)
{
    drop(&ends[0]);
    drop(&ends[1]);
    if (executor)
        executor_runner_end(executor);
    proxied_leave();
    if (executor)
        executor_runner_destroy(executor);
}

static struct cell cell_of(int i)
{
    struct cell c = {.row = (enum row)(i % ROWS)};

    i /= ROWS;
    c.receiver = (enum receiver)(i % RECEIVERS);
    i /= RECEIVERS;
    c.place = (enum place)(i % PLACES);
    c.from = (unsigned)(i / PLACES);
    return c;
}

/* ---- on the loop ---- */

static struct session *the_session(void)
{
    return LIST_FIRST(&proxied.host.sessions, struct session, link);
}

/* The kernel keeps little for them, so that what they do not take waits in the session soon. */
static void do_small(void *arg)
{
    struct session *s = the_session();

    (void)arg;
    session_for_each_leg (leg, s)
        sockets_small(leg->io.fd);
}

struct taken {
    unsigned from;
    uint64_t bytes;
};

static void do_taken(void *arg)
{
    struct taken *t = arg;

    t->bytes = the_session()->legs[t->from]->bytes_in;
}

static uint64_t taken(const struct cell *c)
{
    struct taken t = {.from = c->from};

    loop_runner_call(proxied.host.loop, do_taken, &t);
    return t.bytes;
}

/* A timeout of two hours is over; when something came last is what the row says. */
static void do_time_out(void *arg)
{
    const struct cell *c = arg;
    int64_t now_ns = loop_now_ns(proxied.host.loop);
    struct session *s;

    if (list_empty(&proxied.host.sessions))
        return; /* the receiver has closed, and both have ended */
    s = the_session();

    session_for_each_leg (leg, s)
        leg->last_io_at_ns = now_ns - 7200 * NS_PER_S;
    if (c->row == TIMEOUT_BUSY)
        s->legs[c->from]->last_io_at_ns = now_ns;
    session_time_out(s, SESSION_IDLE, 7200 * NS_PER_S);
}

/* ---- the bytes ---- */

static uint64_t say_step(const struct cell *c, uint64_t total, size_t len)
{
    sockets_say_pattern(ends[c->from], total, len);
    total += len;
    UNTIL(taken(c) == total);
    return total;
}

/* Say what is to be where it has to be; all of it was taken then. How much that is. */
static uint64_t say(const struct cell *c)
{
    uint64_t total = say_step(c, 0, 1000);

    if (c->place == IN_KERNEL || c->place == IN_HANDLER)
        return total;
    while (host_pending(&proxied.host) == 0) {
        ck_assert_uint_lt(total, MOST_BYTES);
        total = say_step(c, total, STEP_BYTES);
    }
    return total;
}

/* Receive what comes of the pattern; how much it was, and with what it ended: 0 or an errno. */
static uint64_t hear(int fd, int *how)
{
    static uint8_t data[65536], expected[sizeof(data)];
    uint64_t heard = 0;
    ssize_t n;

    while ((n = recv(fd, data, sizeof(data), 0)) > 0) {
        sockets_pattern(expected, heard, (size_t)n);
        ck_assert_mem_eq(data, expected, (size_t)n);
        heard += (uint64_t)n;
    }
    *how = n < 0 ? errno : 0;
    return heard;
}

/* ---- a cell ---- */

static void open_session(const struct cell *c)
{
    proxied.host.conf.splice = c->place == IN_PIPE ? SPLICE_ON : SPLICE_OFF;
    if (c->place == IN_HANDLER) {
        executor = executor_runner_create(1, 64);
        proxied.host.pipeline.executor.delay_ns = 200 * NS_PER_MS;
        host_pipeline(&proxied.host, "executor", executor);
    }
    ends[0] = host_client(&proxied.host);
    ends[1] = sockets_accept(proxied.fds[0]);
    loop_runner_call(proxied.host.loop, do_small, NULL);
}

static void prepare_receiver(const struct cell *c)
{
    if (c->receiver == HALF_CLOSED) {
        sockets_end(ends[!c->from]);
        sockets_hear_end(ends[c->from]);
    } else if (c->receiver == CLOSED) {
        drop(&ends[!c->from]);
    }
}

/* It may have been reset already, if its receiver has closed and the machine is busy. */
static void end(const struct cell *c)
{
    ck_assert(shutdown(ends[c->from], SHUT_WR) == 0 || c->receiver == CLOSED);
}

static void happen(struct cell *c)
{
    switch (c->row) {
    case ENDS: end(c); break;
    case RESETS:
        sockets_reset(ends[c->from]);
        ends[c->from] = -1;
        break;
    case ENDS_AND_REFUSES:
        end(c);
        PAUSE_MS(20);
        sockets_reset(ends[c->from]);
        ends[c->from] = -1;
        break;
    case TIMEOUT_QUIET:
    case TIMEOUT_BUSY: loop_runner_call(proxied.host.loop, do_time_out, c); break;
    default: host_abort(&proxied.host, SESSION_DRAIN); break;
    }
}

static bool is_delivered(const struct cell *c)
{
    if (c->row == STOPS)
        return false;
    return c->place != IN_HANDLER || c->row == ENDS || c->row == ENDS_AND_REFUSES;
}

static bool is_cut(const struct cell *c)
{
    return c->row == RESETS || c->row == TIMEOUT_BUSY || !is_delivered(c);
}

/* Both sides are reset. A reset behind an end of file is not seen by recv(2). */
static bool is_sender_reset(const struct cell *c)
{
    bool has_timed_out = c->row == TIMEOUT_QUIET || c->row == TIMEOUT_BUSY;

    return (c->row == STOPS || (has_timed_out && c->place == IN_HANDLER)) &&
           c->receiver != HALF_CLOSED;
}

GROUP(ends, setup, teardown);

TEST_EACH(ends, accepted_bytes_are_delivered_and_lost_bytes_show_as_a_reset,
          ROWS *RECEIVERS *(2 * PLACES - 1))
{
    struct cell c = cell_of(_i);
    uint64_t total, heard;
    int how;

    open_session(&c);
    total = say(&c);
    prepare_receiver(&c);
    if (c.receiver != CLOSED || atomic_load(&proxied.host.ended) == 0)
        happen(&c);
    if (c.receiver == STALLS)
        PAUSE_MS(100);
    if (c.receiver != CLOSED) {
        heard = hear(ends[!c.from], &how);
        ck_assert_msg(!is_delivered(&c) || heard == total,
                      "row %d place %d receiver %d from %u: %llu of %llu bytes", c.row, c.place,
                      c.receiver, c.from, (unsigned long long)heard, (unsigned long long)total);
        ck_assert_msg(how == (is_cut(&c) ? ECONNRESET : 0),
                      "row %d place %d receiver %d from %u: ended by %d", c.row, c.place,
                      c.receiver, c.from, how);
        if (is_sender_reset(&c))
            sockets_hear_reset(ends[c.from]);
    }
    drop(&ends[0]);
    drop(&ends[1]);
    UNTIL(atomic_load(&proxied.host.ended) == 1);
}
