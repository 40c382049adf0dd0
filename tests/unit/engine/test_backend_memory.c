/* engine/backend_memory: what was reserved suffices for libev, and more is refused. */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/backend.h"
#include "support/fault.h"
#include "support/suite.h"

#define WATCHERS 1000

static struct backend b;
static struct ev_io watchers[WATCHERS];
static int fd;
static unsigned n_ready, n_wrong;

static void on_ready(struct ev_loop *ev, struct ev_io *w, int revents)
{
    n_wrong += revents != EV_READ;
    ev_io_stop(ev, w);
    n_ready++;
}

static void setup(void)
{
    fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    ck_assert_int_eq(backend_open(&b, "test", fd, 0), 0);
    backend_memory_use(&b.memory);
}

static void teardown(void)
{
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    for (int i = 0; i < WATCHERS; i++) {
        ev_io_stop(b.ev, &watchers[i]);
        if (watchers[i].fd > 0)
            close(watchers[i].fd);
    }
    backend_close(&b);
    close(fd);
}

/* Descriptors that are readable, from ${first} to ${end}. */
static void make(int first, int end)
{
    for (int i = first; i < end; i++) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

        ck_assert_int_ge(copy, 0);
        ev_io_init(&watchers[i], on_ready, copy, EV_READ);
    }
}

static void watch(int first, int end)
{
    for (int i = first; i < end; i++)
        ev_io_start(b.ev, &watchers[i]);
}

/* check allocates, too: nothing is asserted while memory is missing. */
static void poll_without_memory(unsigned n)
{
    fault_plan(FAULT_MEMORY, 0, FAULT_ALWAYS, ENOMEM);
    for (int i = 0; i < 100 && n_ready < n; i++) /* libev gets 64 events first, then more */
        backend_poll(&b, false);
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    ck_assert_uint_eq(n_ready, n);
    ck_assert_uint_eq(n_wrong, 0);
}

static void watch_without_memory(int first, int end)
{
    fault_plan(FAULT_MEMORY, 0, FAULT_ALWAYS, ENOMEM);
    watch(first, end);
    fault_plan(FAULT_MEMORY, 0, 0, 0);
}

static int reserve_without_memory(unsigned skip, int up_to)
{
    int rc;

    fault_plan(FAULT_MEMORY, skip, FAULT_ALWAYS, ENOMEM);
    rc = backend_memory_reserve(&b.memory, up_to);
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    return rc;
}

GROUP(memory, setup, teardown);

/* Without the reservation libev aborts. */
TEST(memory, reserved_descriptors_can_be_watched_without_memory)
{
    make(0, WATCHERS);
    ck_assert_int_eq(backend_memory_reserve(&b.memory, watchers[WATCHERS - 1].fd), 0);
    watch_without_memory(0, WATCHERS);
    poll_without_memory(WATCHERS);
}

TEST(memory, failed_reservation_keeps_the_previous_one)
{
    make(0, WATCHERS);
    for (unsigned skip = 0; skip < BACKEND_MEMORY_SLOTS; skip++)
        ck_assert_int_eq(reserve_without_memory(skip, watchers[WATCHERS - 1].fd), -ENOMEM);
    ck_assert_int_eq(reserve_without_memory(0, watchers[10].fd), 0);
    watch_without_memory(0, 11);
    poll_without_memory(11);
    ck_assert_int_eq(backend_memory_reserve(&b.memory, watchers[WATCHERS - 1].fd), 0);
    watch_without_memory(11, WATCHERS);
    poll_without_memory(WATCHERS);
}

/* In the middle of use: some arrays have grown, some have not. */
TEST(memory, reservations_follow_each_other)
{
    for (int i = 0; i < WATCHERS; i++) {
        make(i, i + 1);
        ck_assert_int_eq(backend_memory_reserve(&b.memory, watchers[i].fd), 0);
        watch_without_memory(i, i + 1);
        if (i % 100 == 99)
            poll_without_memory((unsigned)i + 1);
    }
}

TEST(memory, an_epoll_instance_is_replaced_without_memory)
{
    int rc;

    make(0, WATCHERS);
    ck_assert_int_eq(backend_memory_reserve(&b.memory, watchers[WATCHERS - 1].fd), 0);
    watch(0, WATCHERS);
    fault_plan(FAULT_MEMORY, 0, FAULT_ALWAYS, ENOMEM);
    rc = backend_rebuild(&b);
    fault_plan(FAULT_MEMORY, 0, 0, 0);
    ck_assert_int_eq(rc, 0);
    poll_without_memory(WATCHERS);
}
