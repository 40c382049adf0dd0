/*
 * server/overload: see overload.h.
 *
 * note: tick. The control loop looks every OVERLOAD_TICK_NS while there is an episode, and sends each worker a task to
 * close some. `ticking` is taken by whoever starts the ticks and given back by the last of them, which then looks once
 * more whether another episode has begun: so there is one series of ticks at most, and none is missing.
 */
#include "server/overload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "net/buffered.h"
#include "server/room.h"
#include "server/threads.h"
#include "server/worker.h"
#include "service/session.h"

#define OVERLOAD_TICK_NS (20 * NS_PER_MS)

/* How many connections a worker closes in a turn, at most: so many it can find in one go through its sessions. */
#define OVERLOAD_VICTIMS 64

struct overload_part {
    struct overload *overload;
    struct loop *loop;
    struct task task;
    atomic_bool busy; /* its task is under way */
};

struct overload {
    struct buffered buffered;
    struct overload_conf conf;
    int64_t
        low_bytes; /* an episode ends at this: half of the limit, and begins above three quarters */
    struct room *room;
    struct loop *control;
    struct timed tick;
    atomic_bool ticking; /* see note: tick */
    _Atomic int64_t began_at_ns;
    struct token_bucket pace;
    _Atomic uint64_t episodes;
    _Atomic uint64_t closed; /* connections, in all episodes */
    uint64_t closed_before;  /* this one; of the control loop */
    unsigned n;
    struct overload_part parts[];
};

static int64_t overload_bytes(const struct overload *ov)
{
    return atomic_load_explicit(&ov->buffered.bytes, memory_order_relaxed);
}

/* ---- on a worker ---- */

/* What this worker is to free: its part of what is too much. Memory comes free at the end of the turn. */
static void overload_shed(struct overload *ov, struct worker *w)
{
    int64_t excess = overload_bytes(ov) - ov->low_bytes;
    struct session *victims[OVERLOAD_VICTIMS];
    unsigned n = worker_stalled(w, victims, OVERLOAD_VICTIMS);
    int64_t now_ns = clock_now_ns();

    if (excess > 0)
        excess = excess / ov->n + 1;
    for (unsigned i = 0; i < n && excess > 0; i++) {
        if (!token_bucket_take(&ov->pace, &ov->conf.shedding, 1, now_ns))
            return;
        excess -= (int64_t)session_held_bytes(victims[i]);
        session_abort(victims[i], SESSION_LIMIT);
        atomic_fetch_add_explicit(&ov->closed, 1, memory_order_relaxed);
    }
}

static void overload_run_part(struct task *t)
{
    struct overload_part *part = CONTAINER_OF(t, struct overload_part, task);

    if (buffered_is_over(&part->overload->buffered))
        overload_shed(part->overload, loop_cookie(part->loop));
    atomic_store(&part->busy, false);
}

static void overload_drop_part(struct task *t)
{
    atomic_store(&CONTAINER_OF(t, struct overload_part, task)->busy, false); /* the worker ends */
}

static const struct task_type overload_part_type = {
    .name = "close stalled sessions", .run = overload_run_part, .drop = overload_drop_part};

/* ---- on the control loop ---- */

static void overload_send_parts(struct overload *ov)
{
    for (unsigned i = 0; i < ov->n; i++) {
        struct overload_part *part = &ov->parts[i];

        if (loop_state(part->loop) == LOOP_NOT_STARTED || atomic_exchange(&part->busy, true))
            continue; /* it has no sessions, or is still at it */
        if (loop_submit(part->loop, LOOP_CONTROL, &part->task) < 0)
            atomic_store(&part->busy, false);
    }
}

/* In this order: once it is not over another episode may begin, and close the room again. */
static void overload_let_in(struct overload *ov)
{
    room_open(ov->room);
    atomic_store(&ov->buffered.is_over, false);
}

static void overload_end_episode(struct overload *ov)
{
    uint64_t closed = atomic_load_explicit(&ov->closed, memory_order_relaxed);
    double seconds = (double)(clock_now_ns() - atomic_load(&ov->began_at_ns)) / (double)NS_PER_S;

    log_notice("overload is over after %.1f s: clients are accepted again; %" PRIu64
               " connections were closed",
               seconds, closed - ov->closed_before);
    ov->closed_before = closed;
    overload_let_in(ov);
}

/* Start the ticks, unless they go on. */
static void overload_start_ticks(struct overload *ov)
{
    if (atomic_exchange(&ov->ticking, true) || loop_submit_after(ov->control, &ov->tick, 0, 0) == 0)
        return;
    atomic_store(&ov->ticking, false);
    overload_let_in(ov); /* nobody would end the episode; who takes more memory begins another */
}

static void overload_run_tick(struct task *t)
{
    struct overload *ov = CONTAINER_OF(CONTAINER_OF(t, struct timed, task), struct overload, tick);

    if (overload_bytes(ov) <= ov->low_bytes)
        overload_end_episode(ov);
    if (buffered_is_over(&ov->buffered)) {
        if (ov->conf.shedding.tokens > 0)
            overload_send_parts(ov);
        loop_schedule(ov->control, &ov->tick, OVERLOAD_TICK_NS);
        return;
    }
    atomic_store(&ov->ticking, false);
    if (buffered_is_over(&ov->buffered)) /* see note: tick */
        overload_start_ticks(ov);
}

static void overload_drop_tick(struct task *t)
{
    (void)t; /* the control loop ends, and with it everything */
}

static const struct task_type overload_tick_type = {
    .name = "overload", .run = overload_run_tick, .drop = overload_drop_tick};

/* ---- any loop ---- */

static void overload_on_over(void *cookie)
{
    struct overload *ov = cookie;

    room_close(ov->room);
    atomic_store(&ov->began_at_ns, clock_now_ns());
    atomic_fetch_add_explicit(&ov->episodes, 1, memory_order_relaxed);
    log_warning("overload: %" PRId64 " bytes wait for clients and servers that do not take them, "
                "three quarters of max_buffered: no client is accepted%s",
                overload_bytes(ov),
                ov->conf.shedding.tokens > 0 ? ", and stalled connections are closed" : "");
    overload_start_ticks(ov);
}

/* ---- main ---- */

int overload_create(struct overload **out, const struct overload_conf *conf,
                    const struct threads *threads, struct room *room)
{
    unsigned n = loop_group_size(threads->workers);
    struct overload *ov;

    *out = NULL;
    if (conf->max_buffered_bytes == 0)
        return 0;
    ov = calloc(1, sizeof(*ov) + n * sizeof(ov->parts[0]));
    if (!ov)
        return -ENOMEM;
    ov->conf = *conf;
    ov->buffered.max_bytes = (int64_t)(conf->max_buffered_bytes / 4 * 3);
    ov->buffered.over = overload_on_over;
    ov->buffered.cookie = ov;
    ov->low_bytes = (int64_t)(conf->max_buffered_bytes / 2);
    ov->room = room;
    ov->control = threads_control(threads);
    timed_init(&ov->tick, &overload_tick_type);
    ov->n = n;
    for (unsigned i = 0; i < n; i++) {
        ov->parts[i].overload = ov;
        ov->parts[i].loop = loop_group_at(threads->workers, i);
        ov->parts[i].task.type = &overload_part_type;
    }
    *out = ov;
    return 0;
}

struct buffered *overload_buffered(struct overload *ov)
{
    return ov ? &ov->buffered : NULL;
}

void overload_log_stats(const struct overload *ov)
{
    if (ov)
        log_notice("stats overload buffered=%" PRId64 " episodes=%" PRIu64 " closed=%" PRIu64,
                   overload_bytes(ov), atomic_load_explicit(&ov->episodes, memory_order_relaxed),
                   atomic_load_explicit(&ov->closed, memory_order_relaxed));
}

void overload_destroy(struct overload *ov)
{
    free(ov);
}
