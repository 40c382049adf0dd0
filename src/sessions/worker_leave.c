#include "sessions/worker_leave.h"

#include "base/clock.h"
#include "listen/listener_generation.h"
#include "service/session.h"
#include "sessions/session_shed.h"

bool worker_leave_at_last(struct session *s)
{
    int64_t leave_by_ns = listener_generation_leave_by_ns(s);

    /* s->leaving may be due to sessions/session_shed, with more time. */
    if (s->phase == SESSION_PHASE_ENDING || leave_by_ns == CLOCK_NEVER ||
        (s->leaving && s->expires_at_ns <= leave_by_ns))
        return false;
    session_leave_by(s, leave_by_ns);
    return true;
}

/* Return the end that worker_leave_at_last() has set for ${s}; CLOCK_NEVER: none. */
static int64_t worker_leave_by_ns(const struct session *s)
{
    int64_t leave_by_ns = listener_generation_leave_by_ns(s);

    return s->phase != SESSION_PHASE_ENDING && s->leaving && s->expires_at_ns == leave_by_ns
               ? leave_by_ns
               : CLOCK_NEVER;
}

static void worker_leave_answered(void *cookie, int64_t n)
{
    (void)cookie;
    (void)n;
}

void worker_leave_spread(const struct session_scan_workers *workers)
{
    static const struct session_shed_conf conf = {
        .percent = 100, .leave_by_ns = worker_leave_by_ns, .answered = worker_leave_answered};

    (void)!session_shed_begin(workers, &conf); /* after a failure all keep the same end */
}
