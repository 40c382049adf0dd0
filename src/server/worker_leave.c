#include "server/worker_leave.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"
#include "server/listener_generation.h"
#include "service/session.h"

bool worker_leave_applies(const struct session *s)
{
    int64_t leave_by_ns = listener_generation_leave_by_ns(s);

    /* server/session_shed may have given it more time. */
    return !s->ending && leave_by_ns != CLOCK_NEVER &&
           (!s->leaving || s->expires_at_ns > leave_by_ns);
}

static size_t worker_leave_count(const struct list *sessions)
{
    size_t n = 0;

    list_for_each (node, sessions)
        n += worker_leave_applies(LIST_ENTRY(node, struct session, link));
    return n;
}

static int worker_leave_compare(const void *a, const void *b)
{
    int64_t first_ns = session_active_at_ns(*(struct session *const *)a);
    int64_t second_ns = session_active_at_ns(*(struct session *const *)b);

    return (first_ns > second_ns) - (first_ns < second_ns);
}

static void worker_leave_spread(struct session **leaving, size_t n)
{
    int64_t now_ns = clock_now_ns();

    qsort(leaving, n, sizeof(struct session *), worker_leave_compare);
    for (size_t i = 0; i < n; i++) {
        int64_t left_ns = listener_generation_leave_by_ns(leaving[i]) - now_ns;

        session_leave_by(leaving[i],
                         now_ns + (int64_t)((double)left_ns / (double)n * (double)(i + 1)));
    }
}

/* Without memory: all sessions end at the last instant. */
static void worker_leave_together(const struct list *sessions)
{
    list_for_each (node, sessions) {
        struct session *s = LIST_ENTRY(node, struct session, link);

        if (worker_leave_applies(s))
            session_leave_by(s, listener_generation_leave_by_ns(s));
    }
}

void worker_leave(struct list *sessions)
{
    size_t n = worker_leave_count(sessions);
    struct session **leaving = n > 0 ? malloc(n * sizeof(struct session *)) : NULL;
    size_t at = 0;

    if (!leaving) {
        worker_leave_together(sessions);
        return;
    }
    list_for_each (node, sessions) {
        struct session *s = LIST_ENTRY(node, struct session, link);

        if (worker_leave_applies(s))
            leaving[at++] = s;
    }
    worker_leave_spread(leaving, n);
    free(leaving);
}
