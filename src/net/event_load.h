/*
 * net/event_load: measures how much time of its loop each channel takes.
 *
 * While asked, one I/O event in EVENT_LOAD_EACH is timed, chosen at random: a pattern in the events
 * charges no channel with the time of another. Its time is charged EVENT_LOAD_EACH times.
 */
#ifndef NET_EVENT_LOAD_H
#define NET_EVENT_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define EVENT_LOAD_EACH 64

/* How long event_load_ask() is in force: longer than two whole seconds. */
#define EVENT_LOAD_ASKED_NS (5 * NS_PER_S)

/* Unit of the time that is charged: a whole second fits into 16 bits. */
#define EVENT_LOAD_UNIT_US 16

/* The load of a channel: time charged in two seconds of the clock. */
struct event_load {
    uint32_t second;       /* the newest second with a charge */
    uint16_t now;          /* charged in that second, in units */
    uint16_t before;       /* charged in the second before */
    uint32_t moved_second; /* when the channel moved for its load; 0: never */
};

/* Of a loop. Zeroed: nobody asks. */
struct event_timing {
    atomic_bool on;           /* relaxed: read at each event */
    unsigned left;            /* events until one is timed; this and `seed`: loop only */
    uint32_t seed;            /* of the random numbers */
    _Atomic int64_t since_ns; /* events have been timed since then, if `on` */
    _Atomic int64_t until_ns;
};

/*
 * event_load_ask(t, now_ns):
 * Time events of the loop for EVENT_LOAD_ASKED_NS. Returns whether loads are known at ${now_ns}:
 * events were timed during the whole last second of the clock.
 */
bool event_load_ask(struct event_timing *t, int64_t now_ns);

/* event_load_known(t, now_ns): as event_load_ask(), without asking. */
bool event_load_known(const struct event_timing *t, int64_t now_ns);

/* event_load_is_asked(t): may events have to be timed? Thread: loop */
static inline bool event_load_is_asked(const struct event_timing *t)
{
    return atomic_load_explicit(&t->on, memory_order_relaxed);
}

/*
 * event_load_begin(t) / event_load_end(t, began_at_ns, load):
 * At an event, if asked: return the time now, or 0 if this event is not to be timed / charge the
 * event to ${load}, and cease to time if nobody asks any more.
 *
 * Thread: loop
 */
int64_t event_load_begin(struct event_timing *t);
void event_load_end(struct event_timing *t, int64_t began_at_ns, struct event_load *load);

/* event_load_second(at_ns): the second of the clock at ${at_ns}. */
static inline uint32_t event_load_second(int64_t at_ns)
{
    return (uint32_t)(at_ns / NS_PER_S);
}

/* event_load_moved_ns(load, now_ns): time since `moved_second`; CLOCK_NEVER: never. */
int64_t event_load_moved_ns(const struct event_load *load, int64_t now_ns);

/* event_load_us(load, now_ns): microseconds charged in the last whole second. Thread: loop */
unsigned event_load_us(const struct event_load *load, int64_t now_ns);

/* event_load_charge(load, at_ns, us): charge ${us} at ${at_ns}. Thread: loop */
void event_load_charge(struct event_load *load, int64_t at_ns, int64_t us);

#endif
