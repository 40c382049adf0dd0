#include "sessions/session_bytes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "engine/loop.h"
#include "service/session.h"
#include "sessions/session_scan.h"

struct session_bytes {
    struct loop *loop;
    struct timer limit;
    void (*done)(void *cookie); /* NULL: was called */
    void *cookie;
};

static void session_bytes_tell(struct session_bytes *b)
{
    void (*done)(void *cookie) = b->done;

    b->done = NULL;
    if (done)
        done(b->cookie);
}

static void session_bytes_run_limit(struct task *t)
{
    session_bytes_tell(TIMER_OWNER(t, struct session_bytes, limit));
}

/* If the asking loop ends, it drops the timer before session_bytes_lost() is called. */
static const struct task_type session_bytes_limit_type = {
    .name = "bytes of sessions", .run = session_bytes_run_limit, .drop = session_bytes_run_limit};

static bool session_bytes_visit(void *cookie, unsigned part, struct session *s)
{
    (void)cookie;
    (void)part;
    session_count_bytes(s);
    return false;
}

static void session_bytes_over(void *cookie)
{
    struct session_bytes *b = cookie;

    loop_cancel(b->loop, &b->limit);
    session_bytes_tell(b);
    free(b);
}

static void session_bytes_lost(void *cookie)
{
    free(cookie);
}

static const struct session_scan_ops session_bytes_ops = {
    .visit = session_bytes_visit, .done = session_bytes_over, .lost = session_bytes_lost};

int session_bytes_begin(const struct session_scan_workers *workers, int64_t limit_ns,
                        void (*done)(void *cookie), void *cookie)
{
    struct session_bytes *b = calloc(1, sizeof(*b));
    int rc;

    if (!b)
        return -ENOMEM;
    *b = (struct session_bytes){.loop = loop_current(), .done = done, .cookie = cookie};
    timer_init(&b->limit, &session_bytes_limit_type);
    rc = session_scan_begin(workers, session_scan_parts(workers), &session_bytes_ops, b);
    if (rc < 0)
        free(b);
    else
        loop_schedule(b->loop, &b->limit, limit_ns);
    return rc;
}
