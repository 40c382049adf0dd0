#include "sessions/session_kill.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "service/session.h"
#include "sessions/session_filter.h"
#include "sessions/session_scan.h"

struct session_kill {
    struct session_filter filter;
    void (*answered)(void *cookie, uint64_t n);
    void *cookie;
    unsigned n_parts;
    uint64_t killed[]; /* sessions killed, by part */
};

static bool session_kill_visit(void *cookie, unsigned part, struct session *s)
{
    struct session_kill *k = cookie;

    if (!session_filter_matches(&k->filter, s, clock_now_ns()))
        return false;
    session_abort(s, SESSION_KILLED);
    k->killed[part]++;
    return true;
}

static void session_kill_done(void *cookie)
{
    struct session_kill *k = cookie;
    uint64_t n = 0;

    for (unsigned i = 0; i < k->n_parts; i++)
        n += k->killed[i];
    k->answered(k->cookie, n);
    free(k);
}

static void session_kill_lost(void *cookie)
{
    free(cookie);
}

static const struct session_scan_ops session_kill_ops = {
    .visit = session_kill_visit, .done = session_kill_done, .lost = session_kill_lost};

int session_kill_begin(const struct session_scan_workers *workers,
                       const struct session_filter *filter,
                       void (*answered)(void *cookie, uint64_t n), void *cookie)
{
    unsigned n = session_scan_parts(workers);
    struct session_kill *k = calloc(1, sizeof(*k) + n * sizeof(k->killed[0]));
    int rc;

    if (!k)
        return -ENOMEM;
    k->filter = *filter;
    k->answered = answered;
    k->cookie = cookie;
    k->n_parts = n;
    rc = session_scan_begin(workers, n, &session_kill_ops, k);
    if (rc < 0)
        free(k);
    return rc;
}
