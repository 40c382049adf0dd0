#include "admin/admin_history.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "admin/admin_settings.h"
#include "admin/admin_types.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "server/server.h"
#include "server/server_admin.h"
#include "server/server_figures.h"
#include "sessions/session_bytes.h"
#include "sessions/session_scan.h"
#include "stats/history.h"

/* Time limit of a step, which always finishes its last object. */
#define ADMIN_HISTORY_STEP_NS (200 * NS_PER_US)

/* With more sessions their bytes are counted every so many rounds. */
#define ADMIN_HISTORY_SESSIONS    10000
#define ADMIN_HISTORY_BYTE_ROUNDS 10

/* Maximum wait for workers to count bytes. */
#define ADMIN_HISTORY_BYTES_NS (100 * NS_PER_MS)

struct admin_history {
    struct admin *admin;
    struct history *history;
    struct timer timer; /* the next round */
    struct task wake;
    atomic_bool is_waking; /* `wake` is queued (release/acquire) */
    bool is_off;           /* no round is scheduled */
    struct task step;      /* of the round under way */
    struct server_figures *walk;
    unsigned rounds_without_bytes;
    bool is_short; /* as logged */
};

/* Sample in the middle of a second, so that small delays do not move a sample to the next. */
static void admin_history_schedule(struct admin_history *ah)
{
    int64_t now_ns = clock_now_ns(), half_ns = NS_PER_S / 2;
    int64_t in_ns = NS_PER_S - (now_ns + half_ns) % NS_PER_S;

    loop_schedule(ah->admin->loop, &ah->timer, in_ns);
}

static void admin_history_tell(struct admin_history *ah, bool is_short)
{
    if (is_short && !ah->is_short)
        log_event(LOG_PROCESS, LOG_LEVEL_WARNING,
                  "history: no memory (%zu bytes are used, at most %d): new figures are not kept "
                  "until there is some",
                  history_bytes(ah->history), HISTORY_MAX_BYTES);
    else if (!is_short && ah->is_short)
        log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "history: there is memory again");
    ah->is_short = is_short;
}

static void admin_history_end(struct admin_history *ah, bool is_complete)
{
    server_figures_end(ah->walk);
    ah->walk = NULL;
    if (!is_complete)
        return;
    history_end(ah->history);
    admin_history_tell(ah, history_is_short(ah->history));
    admin_history_schedule(ah);
}

static void admin_history_run_step(struct task *t)
{
    struct admin_history *ah = CONTAINER_OF(t, struct admin_history, step);
    int64_t until_ns = clock_now_ns() + ADMIN_HISTORY_STEP_NS;

    do {
        if (server_figures_step(ah->walk, history_visitor(ah->history)))
            continue;
        admin_history_end(ah, true);
        return;
    } while (clock_now_ns() < until_ns);
    if (loop_submit(ah->admin->loop, LOOP_TAIL, &ah->step) < 0)
        admin_history_end(ah, false);
}

static void admin_history_drop_step(struct task *t)
{
    admin_history_end(CONTAINER_OF(t, struct admin_history, step), false);
}

static const struct task_type admin_history_step_type = {
    .name = "history", .run = admin_history_run_step, .drop = admin_history_drop_step};

static void admin_history_walk(struct admin_history *ah, unsigned byte_rounds)
{
    const struct server_figures_conf conf = {.max_servers = UINT_MAX, .sampled = true};
    struct admin *a = ah->admin;

    if (a->closing)
        return;
    if (server_figures_begin(&ah->walk, a->server, &conf) < 0) {
        admin_history_tell(ah, true);
        admin_history_schedule(ah);
        return;
    }
    history_begin(ah->history, clock_now_ns(), server_sessions(a->server), byte_rounds);
    admin_history_run_step(&ah->step);
}

static void admin_history_counted(void *cookie)
{
    struct admin_history *ah = cookie;
    unsigned rounds = ah->rounds_without_bytes + 1;

    ah->rounds_without_bytes = 0;
    admin_history_walk(ah, rounds);
}

static void admin_history_run(struct task *t)
{
    struct admin_history *ah = TIMER_OWNER(t, struct admin_history, timer);
    struct admin *a = ah->admin;
    struct session_scan_workers workers = server_admin_workers(a->server);
    unsigned n = server_sessions(a->server);
    int64_t keep_ns = admin_settings_history_ns(a);

    history_keep(ah->history, keep_ns);
    ah->is_off = keep_ns == 0;
    if (ah->is_off)
        return; /* until admin_history_wake() */
    if (n > ADMIN_HISTORY_SESSIONS && ah->rounds_without_bytes + 1 < ADMIN_HISTORY_BYTE_ROUNDS) {
        ah->rounds_without_bytes++;
        admin_history_walk(ah, 0);
    } else if (n == 0 || session_bytes_begin(&workers, ADMIN_HISTORY_BYTES_NS,
                                             admin_history_counted, ah) < 0) {
        admin_history_counted(ah);
    }
}

/* No drop(): at the end of the loop there are no more rounds. */
static const struct task_type admin_history_type = {.name = "history", .run = admin_history_run};

static void admin_history_run_wake(struct task *t)
{
    struct admin_history *ah = CONTAINER_OF(t, struct admin_history, wake);

    atomic_store_explicit(&ah->is_waking, false, memory_order_release);
    if (ah->is_off)
        admin_history_run(&ah->timer.task);
}

static const struct task_type admin_history_wake_type = {.name = "history wakes",
                                                         .run = admin_history_run_wake};

int admin_history_create(struct admin_history **out, struct admin *a)
{
    struct admin_history *ah = calloc(1, sizeof(*ah));
    int rc = ah ? history_create(&ah->history, HISTORY_MAX_BYTES) : -ENOMEM;

    if (rc < 0) {
        free(ah);
        return rc;
    }
    ah->admin = a;
    ah->step.type = &admin_history_step_type;
    ah->wake.type = &admin_history_wake_type;
    atomic_init(&ah->is_waking, false);
    timer_init(&ah->timer, &admin_history_type);
    *out = ah;
    return 0;
}

void admin_history_destroy(struct admin_history *ah)
{
    if (!ah)
        return;
    history_destroy(ah->history);
    free(ah);
}

void admin_history_start(struct admin_history *ah)
{
    admin_history_run(&ah->timer.task);
}

void admin_history_wake(struct admin_history *ah)
{
    if (atomic_exchange_explicit(&ah->is_waking, true, memory_order_acq_rel))
        return;
    if (loop_submit(ah->admin->loop, LOOP_CONTROL, &ah->wake) < 0)
        atomic_store_explicit(&ah->is_waking, false, memory_order_release);
}

struct history *admin_history_of(struct admin_history *ah)
{
    return ah->history;
}
