#include "support/accepts.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"

struct accepts accepts;

static unsigned before; /* descriptors */

static int64_t on_admit(void *cookie)
{
    ck_assert_ptr_eq(cookie, &accepts);
    return atomic_load(&accepts.arrived) < atomic_load(&accepts.admitted) ? 0 : accepts.refusal;
}

static void on_nobody(void *cookie)
{
    ck_assert_ptr_eq(cookie, &accepts);
    atomic_fetch_add(&accepts.nobody, 1);
}

static void on_accepted(void *cookie, int fd, const struct address *peer)
{
    unsigned n = atomic_load(&accepts.arrived);
    struct loop_stats stats;

    ck_assert_ptr_eq(cookie, &accepts);
    ck_assert(loop_is_current(accepts.loop));
    ck_assert_uint_lt(n, ACCEPTS_CLIENTS);
    loop_stats(accepts.loop, &stats);
    accepts.fds[n] = fd;
    accepts.turns[n] = stats.turns;
    accepts.peers[n] = *peer;
    atomic_store(&accepts.arrived, n + 1);
    if (n + 1 == accepts.stop_after)
        acceptor_stop(accepts.acceptor);
}

static void on_name(void *cookie, char *text, size_t size)
{
    ck_assert_ptr_eq(cookie, &accepts);
    snprintf(text, size, "listen test");
}

void accepts_enter(void)
{
    static const struct acceptor_ops ops = {
        .admit = on_admit, .nobody = on_nobody, .accepted = on_accepted, .name = on_name};
    int fd;

    log_lines_capture(LOG_LEVEL_NOTICE);
    accepts.refusal = ACCEPTOR_EXHAUSTED;
    atomic_store(&accepts.admitted, ACCEPTS_CLIENTS);
    before = process_descriptors();
    fd = sockets_listen(&accepts.address, ACCEPTS_CLIENTS);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(acceptor_create(&accepts.acceptor, ACCEPTS_BATCH, fd, &ops, &accepts), 0);
    accepts.loop = loop_runner_create();
}

static void start(void *arg)
{
    acceptor_start(arg, accepts.loop);
}

void accepts_start(void)
{
    loop_runner_call(accepts.loop, start, accepts.acceptor);
}

static void stop(void *arg)
{
    acceptor_stop(arg);
    acceptor_stop(arg);
}

void accepts_stop(void)
{
    loop_runner_call(accepts.loop, stop, accepts.acceptor);
}

void accepts_leave(void)
{
    accepts_stop();
    loop_runner_destroy(accepts.loop);
    acceptor_destroy(accepts.acceptor);
    for (unsigned i = 0; i < atomic_load(&accepts.arrived); i++)
        close(accepts.fds[i]);
    ck_assert_uint_eq(process_descriptors(), before);
}
