/*
 * engine/heard: how far a loop has read its input, and when the process did not run.
 *
 * note: silence. A process that was stopped (SIGSTOP, a debugger, a paused machine) finds timers
 * due and input unread. So a silence timer is due only after a poll that began after its instant
 * has found nothing more. A poll proves nothing if a signal ended it, or if libev's array of events
 * was full. That array has HEARD_ARRAY entries at first, and more than twice as many whenever it
 * was full. So a poll with few events was complete, and a series of HEARD_POLLS polls returns every
 * descriptor that was ready when the series began.
 *
 * note: absence. Peers that wait for us send nothing. So a long time in which the loop did not run
 * extends the deadlines that it interrupted. The last one counts, and a longer one before it. It is
 * recognized by a poll that a signal ended or that returned late, and by a long turn. Time stamps
 * of a turn are taken when its poll ends: in a long turn they mean its end.
 */
#ifndef ENGINE_HEARD_H
#define ENGINE_HEARD_H

#include <stdint.h>

#include "base/clock.h"

/* Length of libev's first array of events (epoll_init() in ev_epoll.c of libev 4.33). */
#define HEARD_ARRAY 64

/* A poll with fewer events was complete. libev drops events of stopped watchers: not so many. */
#define HEARD_FEW (HEARD_ARRAY / 2)

/* HEARD_ARRAY * (2^HEARD_POLLS - 1) descriptors: more than a million. */
#define HEARD_POLLS 14

/* Shorter absences do not count. */
#define HEARD_ABSENCE_NS (100 * NS_PER_MS)

/* How long an absence is remembered while shorter ones follow. */
#define HEARD_REMEMBER_NS (60 * NS_PER_S)

struct heard_absence {
    int64_t gone_at_ns;
    int64_t back_at_ns; /* 0: none */
};

struct heard {
    int64_t at_ns; /* all input up to this instant was read */
    int64_t series_at_ns;
    unsigned series; /* polls with many events since series_at_ns */
    struct heard_absence last;
    struct heard_absence longest; /* before the last one */
};

/*
 * heard_judge_poll(h, began_at_ns, error) / heard_add_absence(h, gone_at_ns, back_at_ns):
 * The rare cases of the next two.
 *
 * Thread: owner
 */
void heard_judge_poll(struct heard *h, int64_t began_at_ns, int error);
void heard_add_absence(struct heard *h, int64_t gone_at_ns, int64_t back_at_ns);

/*
 * heard_poll(h, began_at_ns, events, error):
 * Note a poll whose ${events} were served; ${error} is its errno, or 0. Polls that fail hear
 * nothing, but time goes on.
 *
 * Thread: owner
 */
static inline void heard_poll(struct heard *h, int64_t began_at_ns, unsigned events, int error)
{
    if (error != 0 || events >= HEARD_FEW) {
        heard_judge_poll(h, began_at_ns, error);
        return;
    }
    h->at_ns = began_at_ns;
    h->series = 0;
}

/*
 * heard_note_absence(h, gone_at_ns, back_at_ns):
 * Note that the loop may not have run from ${gone_at_ns} to ${back_at_ns}.
 *
 * Thread: owner
 */
static inline void heard_note_absence(struct heard *h, int64_t gone_at_ns, int64_t back_at_ns)
{
    if (back_at_ns - gone_at_ns >= HEARD_ABSENCE_NS)
        heard_add_absence(h, gone_at_ns, back_at_ns);
}

/*
 * heard_adopt(h, from):
 * Note the absences of another loop, from which something with deadlines came.
 *
 * Thread: owner of ${h}; ${from} does not change
 */
void heard_adopt(struct heard *h, const struct heard *from);

/*
 * heard_due_ns(h, from_ns, limit_ns):
 * The end of ${limit_ns} in which the loop ran, from ${from_ns} on.
 *
 * Thread: owner
 */
int64_t heard_due_ns(const struct heard *h, int64_t from_ns, int64_t limit_ns);

#endif
