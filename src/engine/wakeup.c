/* engine/wakeup: see wakeup.h. */
#include "engine/wakeup.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int wakeup_open(struct wakeup *w)
{
    atomic_init(&w->sleeps_until_ns, WAKEUP_AWAKE);
    atomic_init(&w->sent, 0);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return w->fd < 0 ? -errno : 0;
}

void wakeup_close(struct wakeup *w)
{
    close(w->fd);
    w->fd = -1;
}

void wakeup_send(struct wakeup *w)
{
    uint64_t one = 1;

    /* The plain load keeps the line shared while the loop is busy; see note: wake-up. */
    if (atomic_load(&w->sleeps_until_ns) == WAKEUP_AWAKE)
        return;
    if (atomic_exchange(&w->sleeps_until_ns, WAKEUP_AWAKE) == WAKEUP_AWAKE)
        return;
    atomic_fetch_add_explicit(&w->sent, 1, memory_order_relaxed);
    while (write(w->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
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
