#include "engine/backend.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/event_fd.h"
#include "base/log.h"

/* The backend that this thread polls, for libev's error callback, which gets no argument. */
static _Thread_local struct backend *polling;

/*
 * Without this callback libev would abort; with it, libev retries epoll_create and ignores other
 * errors.
 */
static void backend_on_error(const char *what) EV_NOEXCEPT
{
    const struct timespec pause = {.tv_nsec = BACKEND_PACE_NS};
    static struct log_limit limit;
    int error = errno;
    unsigned suppressed;

    if (polling)
        polling->error = error;
    if (strstr(what, "epoll_create")) {
        if (log_allowed(&limit, NS_PER_S, &suppressed))
            log_error("loop %s: cannot create an epoll instance: %s; trying again%s",
                      polling ? polling->name : "?", strerror(error), LOG_SUPPRESSED(suppressed));
        nanosleep(&pause, NULL);
    }
}

/*
 * libev calls this just before epoll_wait. Events pending here are errors of epoll_ctl, which libev
 * delivers only after epoll_wait: the write makes epoll_wait return at once.
 */
static void backend_before_wait(struct ev_loop *ev) EV_NOEXCEPT
{
    if (polling->blocking && ev_pending_count(ev) > 0)
        (void)event_fd_signal(polling->nudge_fd);
    errno = 0;
}

/* libev calls this just after epoll_wait. libev hides EINTR, so errno is stored here. */
static void backend_after_wait(struct ev_loop *ev) EV_NOEXCEPT
{
    (void)ev;
    polling->error = errno;
}

int backend_open(struct backend *b, const char *name, int nudge_fd, unsigned threshold)
{
    struct backend_memory *before;
    int rc;

    *b = (struct backend){
        .name = name, .epoll_fd = -1, .nudge_fd = nudge_fd, .threshold = threshold, .fresh = true};
    rc = backend_memory_open(&b->memory);
    if (rc < 0)
        return rc;
    before = backend_memory_use(&b->memory);
    ev_set_syserr_cb(backend_on_error);
    errno = 0;
    b->ev = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV | EVFLAG_NOSIGMASK);
    rc = errno ? -errno : -ENOMEM;
    backend_memory_use(before);
    if (!b->ev) {
        backend_memory_close(&b->memory);
        return rc;
    }
    ev_set_loop_release_cb(b->ev, backend_before_wait, backend_after_wait);
    return 0;
}

void backend_close(struct backend *b)
{
    struct backend_memory *before = backend_memory_use(&b->memory);

    ev_loop_destroy(b->ev);
    backend_memory_use(before == &b->memory ? NULL : before);
    backend_memory_close(&b->memory);
}

void backend_poll(struct backend *b, bool may_block)
{
    b->error = 0;
    b->blocking = may_block && !b->fresh;
    b->fresh = false; /* cleared before the poll, because a callback may rebuild and set it again */
    polling = b;
    ev_run(b->ev, b->blocking ? EVRUN_ONCE : EVRUN_NOWAIT);
    polling = NULL;
}

int backend_rebuild(struct backend *b)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0)
        return -errno;
    close(fd); /* a test: libev closes its old instance first, and would fail without another */
    ev_loop_fork(b->ev);
    b->epoll_fd = -1;
    b->fresh = true;
    return 0;
}

static bool backend_cure(struct backend *b, const char *cause)
{
    bool is_news = !b->in_trouble;
    int rc = backend_rebuild(b);

    b->rebuilt_at_ns = b->bad_at_ns;
    b->in_trouble = true;
    b->early = 0;
    if (rc < 0 && is_news)
        log_event(LOG_LOOP, LOG_LEVEL_ERROR,
                  "loop %s: %s; its epoll instance cannot be rebuilt: %s", b->name, cause,
                  strerror(-rc));
    else if (is_news)
        log_event(LOG_LOOP, LOG_LEVEL_WARNING, "loop %s: %s; its epoll instance is rebuilt",
                  b->name, cause);
    return rc == 0;
}

static void backend_recover(struct backend *b)
{
    b->early = 0;
    if (!b->in_trouble || clock_now_ns() - b->bad_at_ns < BACKEND_CURE_NS)
        return;
    if (b->paced)
        log_event(LOG_LOOP, LOG_LEVEL_NOTICE, "loop %s: polling for events succeeds again",
                  b->name);
    b->in_trouble = false;
    b->paced = false;
}

static bool backend_is_bad(struct backend *b, enum backend_poll poll)
{
    if (poll == BACKEND_FAILED)
        return true;
    return b->threshold > 0 && (++b->early >= b->threshold || b->paced);
}

bool backend_judge(struct backend *b, enum backend_poll poll, const char *cause)
{
    if (poll == BACKEND_GOOD)
        backend_recover(b);
    if (poll == BACKEND_NEUTRAL)
        b->early = 0;
    if (poll <= BACKEND_NEUTRAL || !backend_is_bad(b, poll))
        return false;
    b->bad_at_ns = clock_now_ns();
    if (b->rebuilt_at_ns == 0 || b->bad_at_ns - b->rebuilt_at_ns >= BACKEND_CURE_NS)
        return backend_cure(b, cause);
    if (!b->paced)
        log_event(
            LOG_LOOP, LOG_LEVEL_ERROR,
            "loop %s: %s, and rebuilding its epoll instance does not help; the loop is slowed "
            "down",
            b->name, cause);
    b->paced = true;
    return false;
}

static int backend_find_epoll(const struct backend *b)
{
    struct ev_loop *other = ev_loop_new(EVBACKEND_SELECT | EVFLAG_NOENV | EVFLAG_NOSIGMASK);
    struct ev_embed embed;

    if (!other)
        return -1;
    ev_embed_init(&embed, NULL, b->ev);
    ev_embed_start(other, &embed);
    ev_embed_stop(other, &embed);
    ev_loop_destroy(other);
    return embed.io.fd;
}

void backend_forget(struct backend *b, int fd)
{
    struct backend_memory memory, *before;

    if (b->epoll_fd < 0 && backend_memory_open(&memory) == 0) {
        before = backend_memory_use(&memory);
        if (backend_memory_reserve(&memory, atomic_load(&b->memory.n_fds) - 1) == 0)
            b->epoll_fd = backend_find_epoll(b);
        backend_memory_use(before);
        backend_memory_close(&memory);
    }
    (void)epoll_ctl(b->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}
