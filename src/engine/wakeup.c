#include "engine/wakeup.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/event_fd.h"

int wakeup_open(struct wakeup *w)
{
    atomic_init(&w->sleeps_until_ns, WAKEUP_AWAKE);
    atomic_init(&w->sent, 0);
    atomic_init(&w->watcher, NULL);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return w->fd < 0 ? -errno : 0;
}

void wakeup_close(struct wakeup *w)
{
    close(w->fd);
    w->fd = -1;
}

void wakeup_end_sleep(struct wakeup *w)
{
    int64_t until_ns = atomic_exchange(&w->sleeps_until_ns, WAKEUP_AWAKE);

    if (until_ns == WAKEUP_AWAKE)
        return;
    atomic_fetch_add_explicit(&w->sent, 1, memory_order_relaxed);
    /* If the loop has woken up meanwhile, the next producer wakes it needlessly. */
    if (!event_fd_signal(w->fd))
        atomic_store(&w->sleeps_until_ns, until_ns);
    wakeup_send_watcher(w);
}

void wakeup_send_before(struct wakeup *w, int64_t at_ns)
{
    /* WAKEUP_AWAKE is below every instant. */
    if (atomic_load(&w->sleeps_until_ns) > at_ns)
        wakeup_end_sleep(w);
}

void wakeup_prepare(struct wakeup *w, int64_t until_ns)
{
    atomic_store(&w->sleeps_until_ns, until_ns); /* see note: wake-up */
}

void wakeup_done(struct wakeup *w)
{
    atomic_store_explicit(&w->sleeps_until_ns, WAKEUP_AWAKE, memory_order_relaxed);
}

void wakeup_clear(struct wakeup *w)
{
    uint64_t count;

    while (read(w->fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

void wakeup_wait(struct wakeup *w, int64_t at_ns)
{
    struct pollfd fd = {.fd = w->fd, .events = POLLIN};
    int64_t rest_ns = at_ns - clock_now_ns();
    struct timespec rest = {.tv_sec = rest_ns / NS_PER_S, .tv_nsec = rest_ns % NS_PER_S};

    if (rest_ns > 0 && ppoll(&fd, 1, &rest, NULL) > 0)
        wakeup_clear(w);
}
