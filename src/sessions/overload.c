/*
 * sessions/overload: see overload.h.
 *
 * note: tick. During an episode the control loop sends each worker a task every OVERLOAD_TICK_NS,
 * to close connections. `ticking` is set before the first tick and cleared by the last tick. The
 * last tick then looks for a new episode, so each episode has one series of ticks.
 */
#include "sessions/overload.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "limits/connection_limit.h"
#include "sessions/overload_internal.h"
#include "stats/figure.h"

/*
 * Bytes allocated by malloc() (RSS does not shrink when they are freed). Locks each arena and walks
 * its free blocks: 1 ms for 10,000 connections.
 */
static int64_t overload_memory_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return (int64_t)(info.uordblks + info.hblkhd);
}

#define OVERLOAD_TICK_NS (20 * NS_PER_MS)

/*
 * Sampling takes 1 / OVERLOAD_SAMPLE_PART of a CPU at most, but at least one sample a second is
 * taken.
 */
#define OVERLOAD_SAMPLE_PART   100
#define OVERLOAD_SAMPLE_MAX_NS (1 * NS_PER_S)

/* Minimum memory of an idle session; a proxied session takes four times as much. */
#define OVERLOAD_SESSION_BYTES 512

/* ---- control loop ---- */

/* Open the limit first: once is_over is false, a new episode may begin and close the limit. */
static void overload_reopen(struct overload *ov)
{
    connection_limit_open(ov->connection_limit);
    atomic_store(&ov->buffered.is_over, false);
}

static void overload_end_episode(struct overload *ov)
{
    uint64_t closed = atomic_load_explicit(&ov->closed, memory_order_relaxed);
    double seconds = (double)(clock_now_ns() - atomic_load(&ov->began_at_ns)) / (double)NS_PER_S;

    log_event(
        LOG_OVERLOAD, LOG_LEVEL_NOTICE,
        "overload is over after %.1f s: clients are accepted again; connections closed: %" PRIu64,
        seconds, closed - ov->closed_before);
    ov->closed_before = closed;
    overload_reopen(ov);
}

static void overload_start_ticks(struct overload *ov)
{
    if (atomic_exchange(&ov->ticking, true) ||
        loop_submit_after(ov->control, &ov->tick, 0, -OVERLOAD_TICK_NS) == 0)
        return;
    atomic_store(&ov->ticking, false);
    overload_reopen(ov); /* without ticks the episode would never end: end it now */
}

static bool overload_has_passed(const struct overload *ov)
{
    return overload_bytes(ov) <= ov->low_bytes &&
           (ov->conf.max_memory_bytes == 0 || overload_memory(ov) <= ov->low_memory_bytes);
}

static void overload_run_tick(struct task *t)
{
    struct overload *ov = TIMER_OWNER(t, struct overload, tick);

    if (overload_has_passed(ov))
        overload_end_episode(ov);
    if (memory_account_is_over(&ov->buffered)) {
        if (ov->conf.shedding.tokens > 0)
            overload_begin_round(ov);
        return;
    }
    loop_cancel(ov->control, &ov->tick);
    atomic_store(&ov->ticking, false);
    if (memory_account_is_over(&ov->buffered)) /* see note: tick */
        overload_start_ticks(ov);
}

static const struct task_type overload_tick_type = {.name = "overload", .run = overload_run_tick};

/* ---- any loop ---- */

static void overload_begin(struct overload *ov)
{
    /* the limit that began the episode; if both are set, a guess: buffers may be freed by now */
    bool of_buffers = ov->conf.max_memory_bytes == 0 || overload_bytes(ov) > ov->high_bytes;
    const char *closing =
        ov->conf.shedding.tokens == 0 ? "" : ", and stalled connections are closed";

    connection_limit_close(ov->connection_limit,
                           of_buffers ? "three quarters of max_buffered of [reactord]"
                                      : "the threshold of max_memory of [reactord]");
    atomic_store(&ov->began_at_ns, clock_now_ns());
    atomic_fetch_add_explicit(&ov->episodes, 1, memory_order_relaxed);
    if (of_buffers)
        log_event(LOG_OVERLOAD, LOG_LEVEL_WARNING,
                  "overload: %" PRId64 " bytes are buffered, the limit is %" PRId64
                  ", three quarters of max_buffered: no client is accepted%s",
                  overload_bytes(ov), ov->high_bytes, closing);
    else
        log_event(LOG_OVERLOAD, LOG_LEVEL_WARNING,
                  "overload: %" PRId64 " bytes of memory are in use, %" PRId64
                  " of them buffered; the threshold of max_memory is %" PRId64
                  ": no client is accepted%s",
                  overload_memory(ov), overload_bytes(ov), ov->high_memory_bytes,
                  *closing && overload_is_of_idle(ov) ? ", and idle connections are closed"
                                                      : closing);
    overload_start_ticks(ov);
}

static void overload_on_over(void *cookie)
{
    overload_begin(cookie);
}

/* ---- memory samples, control loop ---- */

static unsigned overload_sessions(const struct overload *ov)
{
    unsigned loops = loop_group_size(ov->workers), n = 0;

    for (unsigned i = 0; i < loops; i++)
        n += loop_load(loop_group_at(ov->workers, i));
    return n;
}

static void overload_estimate_session(struct overload *ov, int64_t memory, int64_t held)
{
    unsigned sessions = overload_sessions(ov);
    int64_t each = sessions > 0 ? (memory - held - ov->idle_memory_bytes) / sessions : 0;

    atomic_store_explicit(&ov->session_bytes,
                          each > OVERLOAD_SESSION_BYTES ? each : OVERLOAD_SESSION_BYTES,
                          memory_order_relaxed);
}

/* Sample memory; see note: samples. */
static void overload_sample(struct overload *ov)
{
    int64_t held = overload_bytes(ov), tls = tls_memory_bytes();
    int64_t memory = overload_memory_in_use() +
                     atomic_load_explicit(&ov->buffered.pipe_bytes, memory_order_relaxed);
    int64_t left = ov->high_memory_bytes - memory;

    overload_estimate_session(ov, memory, held);
    atomic_store_explicit(&ov->memory_bytes, memory, memory_order_relaxed);
    atomic_store_explicit(&ov->held_bytes, held, memory_order_relaxed);
    atomic_store_explicit(&ov->tls_bytes, tls, memory_order_relaxed);
    atomic_store_explicit(&ov->surplus_bytes, memory - ov->low_memory_bytes, memory_order_relaxed);
    atomic_store_explicit(&ov->buffered.max_bytes,
                          overload_min(ov->high_bytes, held + (left > 0 ? left : 0)),
                          memory_order_relaxed);
    tls_memory_limit(&ov->buffered, tls + (left > 0 ? left : 0));
    if (left < 0 && !atomic_exchange(&ov->buffered.is_over, true))
        overload_begin(ov);
}

static void overload_run_sample(struct task *t)
{
    struct overload *ov = TIMER_OWNER(t, struct overload, sample);
    int64_t began_ns = clock_thread_ns(), pause_ns;

    overload_sample(ov);
    pause_ns = OVERLOAD_SAMPLE_PART * (clock_thread_ns() - began_ns);
    pause_ns = pause_ns > OVERLOAD_SAMPLE_NS ? pause_ns : OVERLOAD_SAMPLE_NS;
    loop_schedule(ov->control, &ov->sample,
                  pause_ns < OVERLOAD_SAMPLE_MAX_NS ? pause_ns : OVERLOAD_SAMPLE_MAX_NS);
}

static const struct task_type overload_sample_type = {.name = "sample memory",
                                                      .run = overload_run_sample};

int overload_create(struct overload **out, const struct overload_conf *conf, struct loop *control,
                    struct loop_group *workers, struct connection_limit *connection_limit)
{
    unsigned n = loop_group_max(workers);
    uint64_t limit = conf->max_buffered_bytes > 0 ? conf->max_buffered_bytes : INT64_MAX;
    struct overload *ov;

    *out = NULL;
    if (conf->max_buffered_bytes == 0 && conf->max_memory_bytes == 0)
        return 0;
    ov = calloc(1, sizeof(*ov) + n * sizeof(ov->parts[0]));
    if (!ov)
        return -ENOMEM;
    ov->conf = *conf;
    ov->high_bytes = (int64_t)(limit / 4 * 3);
    ov->low_bytes = (int64_t)(limit / 2);
    atomic_init(&ov->buffered.max_bytes, ov->high_bytes);
    ov->buffered.over = overload_on_over;
    ov->buffered.cookie = ov;
    ov->connection_limit = connection_limit;
    ov->control = control;
    timer_init(&ov->tick, &overload_tick_type);
    timer_init(&ov->sample, &overload_sample_type);
    ov->workers = workers;
    for (unsigned i = 0; i < n; i++)
        overload_part_init(&ov->parts[i], ov);
    *out = ov;
    return 0;
}

int overload_start(struct overload *ov)
{
    int64_t limit, usable;
    int rc;

    if (!ov || ov->conf.max_memory_bytes == 0)
        return 0;
    limit = (int64_t)ov->conf.max_memory_bytes;
    ov->idle_memory_bytes = overload_memory_in_use();
    usable = limit - ov->idle_memory_bytes;
    if (usable < limit / 2) {
        log_error(
            "max_memory: %" PRId64 " of %" PRId64
            " bytes are in use before the first client, which is more than half: reduce worker "
            "threads or raise max_memory",
            ov->idle_memory_bytes, limit);
        return -ERANGE;
    }
    ov->high_memory_bytes = ov->idle_memory_bytes + usable / 4 * 3;
    ov->low_memory_bytes = ov->idle_memory_bytes + usable / 8 * 5;
    rc = loop_submit_after(ov->control, &ov->sample, 0, 0);
    if (rc < 0)
        log_error("cannot start the control thread: %s", strerror(-rc));
    return rc;
}

struct memory_account *overload_buffered(struct overload *ov)
{
    return ov ? &ov->buffered : NULL;
}

struct overload_heap_view {
    uint64_t in_use, free;
    int64_t tls;
};

static const struct figure overload_heap_rows[] = {
    FIGURE_OF(struct overload_heap_view, GAUGE, BYTES, in_use, "Bytes of the heap in use."),
    FIGURE_OF(struct overload_heap_view, GAUGE, BYTES, free, "Bytes that the allocator keeps."),
    FIGURE_OF(struct overload_heap_view, GAUGE, BYTES, tls,
              "Bytes of `in_use` that the TLS library has."),
};

static const struct figure_table overload_heap_table = {
    FIGURE_TABLE(struct overload_heap_view, overload_heap_rows)};

void overload_heap_figures(struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_MEMORY};
    struct mallinfo2 info = mallinfo2();
    const struct overload_heap_view view = {
        .in_use = info.uordblks + info.hblkhd, .free = info.fordblks, .tls = tls_memory_bytes()};

    figure_show(v, &overload_heap_table, &object, &view);
}

static const struct figure overload_rows[] = {
    FIGURE_LIVE(struct overload, GAUGE, BYTES, buffered.bytes, "buffered",
                "Bytes for receivers that do not keep up."),
    FIGURE_LIVE(struct overload, GAUGE, BYTES, buffered.pipe_bytes, "pipes",
                "Bytes of `buffered` that are in pipes."),
    FIGURE_LIVE(struct overload, COUNTER, NUMBER, episodes, "episodes", "Episodes of overload."),
    FIGURE_LIVE(struct overload, COUNTER, NUMBER, closed, "closed",
                "Connections that were closed by an overload."),
};

static const struct figure_table overload_table = {FIGURE_LIVE_TABLE(0, overload_rows)};

struct overload_state_view {
    int64_t max_buffered, max_memory;
};

static const struct figure overload_state_rows[] = {
    FIGURE_LIVE(struct overload, GAUGE, NUMBER, buffered.is_over, "active",
                "1 during an overload, while no client is accepted."),
    FIGURE_OF(struct overload_state_view, GAUGE, BYTES, max_buffered, "max_buffered; 0: no limit."),
    FIGURE_OF(struct overload_state_view, GAUGE, BYTES, max_memory, "max_memory; 0: no limit."),
};

static const struct figure_table overload_state_table = {
    .is_not_logged = true,
    FIGURE_LIVE_TABLE(sizeof(struct overload_state_view), overload_state_rows)};

void overload_figures(const struct overload *ov, struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_OVERLOAD};
    struct overload_state_view state;

    if (!ov)
        return;
    state = (struct overload_state_view){.max_buffered = (int64_t)ov->conf.max_buffered_bytes,
                                         .max_memory = (int64_t)ov->conf.max_memory_bytes};
    figure_show_live(v, &overload_table, &object, NULL, ov);
    figure_show_live(v, &overload_state_table, &object, &state, ov);
}

void overload_destroy(struct overload *ov)
{
    tls_memory_limit(NULL, 0);
    free(ov);
}
