/* support/bell: see bell.h. */
#include "support/bell.h"

#include <check.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/loop_runner.h"
#include "support/until.h"

static void on_ready(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct bell *b = CONTAINER_OF(w, struct bell, io);
    uint64_t count;

    (void)ev;
    if (revents & EV_ERROR) {
        atomic_fetch_add(&b->n_errors, 1);
        return;
    }
    ck_assert_int_eq(read(w->fd, &count, sizeof(count)), sizeof(count));
    atomic_fetch_add(&b->n_heard, 1);
    if (b->heard)
        b->heard(b);
}

static void watch(void *arg)
{
    struct bell *b = arg;

    ev_io_set(&b->io, b->io.fd, EV_READ); /* or libev takes what failed for registered */
    ev_io_start(loop_ev(b->loop), &b->io);
}

static void unwatch(void *arg)
{
    struct bell *b = arg;

    ev_io_stop(loop_ev(b->loop), &b->io);
    close(b->io.fd);
}

void bell_open(struct bell *b, struct loop *loop, void (*heard)(struct bell *b))
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    ck_assert_int_ge(fd, 0);
    *b = (struct bell){.loop = loop, .heard = heard};
    ev_io_init(&b->io, on_ready, fd, EV_READ);
    bell_watch(b);
}

void bell_watch(struct bell *b)
{
    loop_runner_call(b->loop, watch, b);
}

void bell_ring(struct bell *b)
{
    uint64_t one = 1;

    ck_assert_int_eq(write(b->io.fd, &one, sizeof(one)), sizeof(one));
}

void bell_close(struct bell *b)
{
    loop_runner_call(b->loop, unwatch, b);
}

void bell_expect_heard(struct bell *b)
{
    unsigned before = atomic_load(&b->n_heard);

    bell_ring(b);
    UNTIL(atomic_load(&b->n_heard) == before + 1);
}
