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
    /* The loop writes these while it is beating. */
    uint64_t turns;      /* at the last check, or with the turn of a later beat */
    uint64_t beat_turns; /* with the turn of the last beat */
};

struct watchdog {
    int64_t threshold_ns;
    bool is_quiet; /* the last check found only few turns */
    struct wakeup wakeup;
    unsigned max_loops;
    atomic_uint n_loops; /* publishes the new entry of `watches`; see note: doze */
    struct watch watches[];
};

static uint64_t watchdog_turns(const struct watch *watch)
{
    return TELEMETRY_GET(watch->loop->telemetry.turns);
}

static void watchdog_take_beat(struct task *t)
{
    struct watch *watch = CONTAINER_OF(t, struct watch, beat);

    watch->turns = watchdog_turns(watch) + 1; /* this turn is counted at its end */
    watch->beat_turns = watch->turns;
    atomic_store_explicit(&watch->beating, false, memory_order_release);
}

static const struct task_type watchdog_beat_type = {
    .name = "watchdog beat", .run = watchdog_take_beat, .drop = watchdog_take_beat};

int watchdog_create(struct watchdog **out, unsigned max_loops, int64_t threshold_ns)
{
    struct watchdog *w = calloc(1, sizeof(*w) + max_loops * sizeof(w->watches[0]));
    int rc = w ? wakeup_open(&w->wakeup) : -ENOMEM;

    if (rc < 0) {
        free(w);
        return rc;
    }
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
    atomic_store_explicit(&loop->wakeup.watcher, &w->wakeup, memory_order_release);
    atomic_store(&w->n_loops, n + 1);
    wakeup_send(&w->wakeup); /* a turn of ${loop} that has begun already */
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

/* Is a task queued, also a lazy one, which does not wake the loop? See note: doze. */
static bool watchdog_has_tasks(const struct loop *l)
{
    for (unsigned i = 0; i < LOOP_QUEUES; i++)
        if (atomic_load(&l->queues[i].newest))
            return true;
    return false;
}

/* Is the loop in a turn, or has it a task? See note: doze. */
static bool watchdog_is_busy(const struct loop *l)
{
    return atomic_load(&l->telemetry.turn_at_ns) != 0 || watchdog_has_tasks(l);
}

static bool watchdog_is_beating(const struct watch *watch)
{
    return atomic_load_explicit(&watch->beating, memory_order_acquire);
}

/* Is the loop to be looked at again, whatever else happens? */
static bool watchdog_is_needed(const struct watch *watch)
{
    return watchdog_is_beating(watch) || watch->asleep || watch->stalled_at_ns > 0 ||
           watchdog_is_busy(watch->loop);
}

/* Note the turns so far; true: few since the last check. */
static bool watchdog_count_turns(struct watch *watch)
{
    uint64_t before;

    if (watchdog_is_beating(watch))
        return false;
    before = watch->turns;
    watch->turns = watchdog_turns(watch);
    return watch->turns - before <= WATCHDOG_FEW_TURNS;
}

/* Send a beat, if ${to_all} also to a loop at rest; false: the last one was not answered. */
static bool watchdog_answers(const struct watchdog *w, struct watch *watch, int64_t now_ns,
                             bool to_all)
{
    bool beating = watchdog_is_beating(watch);
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
    if (!to_all && !watchdog_is_busy(watch->loop) && watchdog_turns(watch) == watch->beat_turns)
        return true;
    watch->beat_at_ns = now_ns;
    atomic_store_explicit(&watch->beating, true, memory_order_relaxed);
    if (loop_submit(watch->loop, LOOP_CONTROL, &watch->beat) < 0)
        atomic_store_explicit(&watch->beating, false, memory_order_relaxed);
    return true;
}

bool watchdog_check(struct watchdog *w)
{
    unsigned n = atomic_load(&w->n_loops);
    int64_t now_ns = clock_now_ns();
    bool all = true, dozed = atomic_load(&w->wakeup.sleeps_until_ns) != WAKEUP_AWAKE;

    wakeup_done(&w->wakeup);
    w->is_quiet = true;
    for (unsigned i = 0; i < n; i++) {
        enum loop_state state = loop_state(w->watches[i].loop);

        w->is_quiet &= watchdog_count_turns(&w->watches[i]);
        if (state == LOOP_NOT_STARTED || state == LOOP_TERMINATED)
            continue;
        all &= watchdog_is_turning(w, &w->watches[i], now_ns);
        all &= watchdog_answers(w, &w->watches[i], now_ns, dozed);
    }
    return all;
}

bool watchdog_doze(struct watchdog *w)
{
    unsigned n;

    if (!w->is_quiet)
        return false;
    wakeup_clear(&w->wakeup);
    wakeup_prepare(&w->wakeup, CLOCK_NEVER); /* see note: doze */
    n = atomic_load(&w->n_loops);
    for (unsigned i = 0; i < n; i++)
        if (watchdog_is_needed(&w->watches[i])) {
            wakeup_done(&w->wakeup);
            return false;
        }
    return true;
}

int watchdog_fd(const struct watchdog *w)
{
    return w->wakeup.fd;
}

void watchdog_destroy(struct watchdog *w)
{
    if (!w)
        return;
    wakeup_close(&w->wakeup);
    free(w);
}
