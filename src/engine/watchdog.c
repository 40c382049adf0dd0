#include "engine/watchdog.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/loop_internal.h"

struct watch {
    struct loop *loop;
    int64_t stalled_at_ns; /* start of the turn reported as stalled; 0: none */
    struct task beat;
    atomic_bool beating; /* `beat` is queued (release/acquire); false: it may be submitted again */
    int64_t beat_at_ns;  /* when `beat` was last submitted; 0: never */
    bool asleep;         /* a missed beat was reported */
};

struct watchdog {
    int64_t threshold_ns;
    unsigned max_loops;
    atomic_uint n_loops; /* release/acquire: publishes the new entry of `watches` */
    struct watch watches[];
};

static void watchdog_take_beat(struct task *t)
{
    atomic_store_explicit(&CONTAINER_OF(t, struct watch, beat)->beating, false,
                          memory_order_release);
}

static const struct task_type watchdog_beat_type = {
    .name = "watchdog beat", .run = watchdog_take_beat, .drop = watchdog_take_beat};

int watchdog_create(struct watchdog **out, unsigned max_loops, int64_t threshold_ns)
{
    struct watchdog *w = calloc(1, sizeof(*w) + max_loops * sizeof(w->watches[0]));

    if (!w)
        return -ENOMEM;
    w->threshold_ns = threshold_ns;
    w->max_loops = max_loops;
    *out = w;
    return 0;
}

void watchdog_add(struct watchdog *w, struct loop *loop)
{
    unsigned n = atomic_load_explicit(&w->n_loops, memory_order_relaxed);
    struct watch *watch = &w->watches[n];

    MUST(n < w->max_loops);
    watch->loop = loop;
    watch->beat.type = &watchdog_beat_type;
    atomic_init(&watch->beating, false);
    atomic_store_explicit(&w->n_loops, n + 1, memory_order_release);
}

int64_t watchdog_interval_ns(const struct watchdog *w)
{
    if (w->threshold_ns == 0)
        return WATCHDOG_BEAT_NS;
    return w->threshold_ns / 2 < WATCHDOG_LOOK_MAX_NS ? w->threshold_ns / 2 : WATCHDOG_LOOK_MAX_NS;
}

static bool watchdog_is_turning(struct watchdog *w, struct watch *watch, int64_t now_ns)
{
    const struct telemetry *t = &watch->loop->telemetry;
    int64_t turn_at_ns = TELEMETRY_GET(t->turn_at_ns);
    const char *doing = TELEMETRY_GET(t->doing);

    if (watch->stalled_at_ns > 0 && turn_at_ns != watch->stalled_at_ns) {
        log_event(LOG_LOOP, LOG_LEVEL_NOTICE, "loop %s: recovered after a stall of about %.1f s",
                  loop_name(watch->loop),
                  (double)(now_ns - watch->stalled_at_ns) / (double)NS_PER_S);
        watch->stalled_at_ns = 0;
    }
    if (turn_at_ns == 0 || w->threshold_ns == 0 || now_ns - turn_at_ns < w->threshold_ns)
        return true;
    if (watch->stalled_at_ns == 0)
        log_event(LOG_LOOP, LOG_LEVEL_WARNING,
                  "loop %s: stalled: this turn has lasted %.3f s, now in %s",
                  loop_name(watch->loop), (double)(now_ns - turn_at_ns) / (double)NS_PER_S,
                  doing ? doing : "an unnamed callback");
    watch->stalled_at_ns = turn_at_ns;
    return false;
}

static bool watchdog_answers(const struct watchdog *w, struct watch *watch, int64_t now_ns)
{
    bool beating = atomic_load_explicit(&watch->beating, memory_order_acquire);
    int64_t patience_ns = WATCHDOG_BEAT_NS > w->threshold_ns ? WATCHDOG_BEAT_NS : w->threshold_ns;

    if (watch->beat_at_ns > 0 && now_ns - watch->beat_at_ns < patience_ns)
        return !watch->asleep;
    if (beating && !watch->asleep)
        log_event(LOG_LOOP, LOG_LEVEL_ERROR,
                  "loop %s: runs no tasks: the watchdog's task has waited for %.1f s",
                  loop_name(watch->loop), (double)(now_ns - watch->beat_at_ns) / (double)NS_PER_S);
    if (!beating && watch->asleep)
        log_event(LOG_LOOP, LOG_LEVEL_NOTICE, "loop %s: runs tasks again", loop_name(watch->loop));
    watch->asleep = beating;
    if (beating)
        return false;
    if (loop_state(watch->loop) != LOOP_STARTED)
        return true; /* a beat would prolong the quiet period of the stop */
    watch->beat_at_ns = now_ns;
    atomic_store_explicit(&watch->beating, true, memory_order_relaxed);
    if (loop_submit(watch->loop, LOOP_CONTROL, &watch->beat) < 0)
        atomic_store_explicit(&watch->beating, false, memory_order_relaxed);
    return true;
}

bool watchdog_check(struct watchdog *w)
{
    unsigned n = atomic_load_explicit(&w->n_loops, memory_order_acquire);
    int64_t now_ns = clock_now_ns();
    bool all = true;

    for (unsigned i = 0; i < n; i++) {
        enum loop_state state = loop_state(w->watches[i].loop);

        if (state == LOOP_NOT_STARTED || state == LOOP_TERMINATED)
            continue;
        all &= watchdog_is_turning(w, &w->watches[i], now_ns);
        all &= watchdog_answers(w, &w->watches[i], now_ns);
    }
    return all;
}

void watchdog_destroy(struct watchdog *w)
{
    free(w);
}
