#include "stats/access_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ref.h"
#include "base/cache_line.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/executor.h"
#include "engine/queue.h"
#include "stats/access_log_format.h"

/* Delays of the writer: after the first line; after -EAGAIN; during an episode of losses. */
#define ACCESS_LOG_DELAY_NS (10 * NS_PER_MS)
#define ACCESS_LOG_AGAIN_NS (20 * NS_PER_MS)
#define ACCESS_LOG_WATCH_NS (250 * NS_PER_MS)

/* An episode of losses ends after this time without a loss. */
#define ACCESS_LOG_CALM_NS (1 * NS_PER_S)

/* Time for a thread to end that no write holds up, however late access_log_finish() is called. */
#define ACCESS_LOG_JOIN_NS (100 * NS_PER_MS)

/* Limits: bytes per write; writes per run, so that access_log_finish() waits briefly. */
#define ACCESS_LOG_BATCH_BYTES (64 * 1024)
#define ACCESS_LOG_BATCHES     16

_Static_assert(ACCESS_LOG_BATCH_BYTES > ACCESS_LOG_LINE_BYTES, "each line fits into a batch");

struct access_line {
    struct task place; /* queue entry; never runs */
    size_t len;
    char text[];
};

/*
 *   0       head                         tail   ACCESS_LOG_BATCH_BYTES
 *   | taken | whole lines; of the first   | free |   0 <= head <= tail <= ACCESS_LOG_BATCH_BYTES
 *           | line perhaps only the rest  |
 */
struct access_log {
    struct access_log_conf conf;
    struct executor *executor; /* one thread: runs never overlap */
    struct queue lines;
    struct ref references;
    atomic_size_t max_bytes;
    alignas(CACHE_LINE_BYTES) atomic_size_t waiting_bytes;
    _Atomic uint64_t numbers;
    _Atomic uint64_t dropped;
    atomic_bool scheduled; /* see note: scheduled */
    atomic_bool losing;
    alignas(CACHE_LINE_BYTES) struct timer writer;
    _Atomic uint64_t written;
    uint64_t dropped_before; /* dropped before this episode of losses */
    uint64_t dropped_seen;   /* dropped at `calm_since_ns` */
    int64_t calm_since_ns;
    size_t head, tail;
    bool torn;  /* the rest of a partly written line was dropped */
    bool mends; /* the batch starts with a newline that ends a torn line */
    char batch[ACCESS_LOG_BATCH_BYTES];
};

static void access_log_schedule(struct access_log *al, int64_t delay_ns)
{
    if (atomic_exchange(&al->scheduled, true))
        return;
    if (executor_schedule(al->executor, &al->writer, delay_ns) < 0)
        atomic_store(&al->scheduled, false); /* no thread: the next line tries again */
}

static void access_log_lose(struct access_log *al, uint64_t n, const char *why)
{
    atomic_fetch_add_explicit(&al->dropped, n, memory_order_relaxed);
    if (!atomic_load_explicit(&al->losing, memory_order_relaxed) &&
        !atomic_exchange(&al->losing, true))
        log_warning("access log %s: lines are dropped: %s", al->conf.name, why);
    access_log_schedule(al, ACCESS_LOG_AGAIN_NS);
}

static size_t access_line_cost(size_t len)
{
    return sizeof(struct access_line) + len;
}

struct access_log *access_log_hold(struct access_log *al)
{
    if (al)
        ref_hold(&al->references);
    return al;
}

void access_log_release(struct access_log *al)
{
    if (al)
        MUST(!ref_release(&al->references));
}

bool access_log_used(const struct access_log *al)
{
    return ref_count(&al->references) > 1;
}

void access_log_set_max_bytes(struct access_log *al, size_t max_bytes)
{
    MUST(max_bytes >= ACCESS_LOG_BATCH_BYTES);
    atomic_store_explicit(&al->max_bytes, max_bytes, memory_order_relaxed);
}

uint64_t access_log_number(struct access_log *al)
{
    return atomic_fetch_add_explicit(&al->numbers, 1, memory_order_relaxed) + 1;
}

void access_log_put(struct access_log *al, const char *line, size_t len)
{
    size_t cost = access_line_cost(len);
    struct access_line *l;

    MUST(len > 0 && len <= ACCESS_LOG_LINE_BYTES && line[len - 1] == '\n');
    if (atomic_fetch_add_explicit(&al->waiting_bytes, cost, memory_order_relaxed) >
        atomic_load_explicit(&al->max_bytes, memory_order_relaxed) - cost) {
        atomic_fetch_sub_explicit(&al->waiting_bytes, cost, memory_order_relaxed);
        access_log_lose(al, 1, "access_log_buffer is full");
        return;
    }
    l = malloc(cost);
    if (!l) {
        atomic_fetch_sub_explicit(&al->waiting_bytes, cost, memory_order_relaxed);
        access_log_lose(al, 1, "out of memory");
        return;
    }
    l->len = len;
    memcpy(l->text, line, len);
    queue_push(&al->lines, &l->place);
    access_log_schedule(al, ACCESS_LOG_DELAY_NS);
}

void access_log_wake(struct access_log *al)
{
    access_log_schedule(al, 0);
}

static bool access_log_next_fits(const struct access_log *al)
{
    const struct task *place = queue_peek(&al->lines);
    size_t len = place ? CONTAINER_OF((struct task *)place, struct access_line, place)->len : 0;

    return place && len + al->torn <= sizeof(al->batch) - al->tail;
}

static void access_log_fill(struct access_log *al)
{
    size_t freed = 0;

    if (al->head == al->tail)
        al->head = al->tail = 0;
    queue_take(&al->lines);
    while (access_log_next_fits(al)) {
        struct access_line *l = CONTAINER_OF(queue_pop(&al->lines), struct access_line, place);

        if (al->torn)
            al->batch[al->tail++] = '\n';
        al->mends = al->mends || al->torn;
        al->torn = false;
        memcpy(al->batch + al->tail, l->text, l->len);
        al->tail += l->len;
        freed += access_line_cost(l->len);
        free(l);
    }
    if (freed > 0)
        atomic_fetch_sub_explicit(&al->waiting_bytes, freed, memory_order_relaxed);
}

static uint64_t access_log_lines_in(const char *bytes, size_t len)
{
    uint64_t n = 0;

    for (const char *at = bytes; (at = memchr(at, '\n', (size_t)(bytes + len - at))); at++)
        n++;
    return n;
}

static void access_log_taken(struct access_log *al, size_t len)
{
    uint64_t n = access_log_lines_in(al->batch + al->head, len);

    MUST(len > 0 && len <= al->tail - al->head);
    atomic_fetch_add_explicit(&al->written, n - al->mends, memory_order_relaxed);
    al->mends = false;
    al->head += len;
}

static uint64_t access_log_clear_batch(struct access_log *al)
{
    uint64_t n = access_log_lines_in(al->batch + al->head, al->tail - al->head) - al->mends;

    al->torn = al->mends || (al->head > 0 && al->batch[al->head - 1] != '\n');
    al->mends = false;
    al->head = al->tail = 0;
    return n;
}

static void access_log_drop_batch(struct access_log *al, const char *why)
{
    access_log_lose(al, access_log_clear_batch(al), why);
}

/* Has the sink taken a line only in part? */
static bool access_log_is_cut(const struct access_log *al)
{
    return al->torn || al->mends || (al->head > 0 && al->batch[al->head - 1] != '\n');
}

/* After a rotation, write a line that the old file has in part again, as a whole. */
static void access_log_rotate(struct access_log *al)
{
    if (!al->conf.sink.rotate || !al->conf.sink.rotate(al->conf.sink.cookie, access_log_is_cut(al)))
        return;
    if (al->mends)
        al->head = 1; /* a new file has no torn line */
    al->mends = false;
    al->torn = false;
    while (al->head > 0 && al->batch[al->head - 1] != '\n')
        al->head--;
}

/*
 * Write queued lines. Returns 0: none are left; -EAGAIN: the sink takes nothing now; -EINPROGRESS:
 * lines may be left for the next run.
 */
static int access_log_write(struct access_log *al)
{
    for (unsigned i = 0; i < ACCESS_LOG_BATCHES; i++) {
        ssize_t n;

        access_log_rotate(al);
        access_log_fill(al);
        if (al->head == al->tail)
            return 0;
        n = al->conf.sink.write(al->conf.sink.cookie, al->batch + al->head, al->tail - al->head);
        if (n == -EAGAIN)
            return -EAGAIN;
        if (n < 0)
            access_log_drop_batch(al, strerror((int)-n));
        else
            access_log_taken(al, (size_t)n);
    }
    return -EINPROGRESS;
}

static void access_log_end_episode(struct access_log *al)
{
    uint64_t dropped = atomic_load_explicit(&al->dropped, memory_order_relaxed);

    log_warning("access log %s: takes lines again; lines dropped: %" PRIu64, al->conf.name,
                dropped - al->dropped_before);
    al->dropped_before = dropped;
    atomic_store(&al->losing, false);
}

static bool access_log_has_recovered(const struct access_log *al)
{
    return !al->conf.sink.recovered || al->conf.sink.recovered(al->conf.sink.cookie);
}

static void access_log_watch(struct access_log *al, bool all_written)
{
    uint64_t dropped = atomic_load_explicit(&al->dropped, memory_order_relaxed);
    int64_t now_ns = clock_now_ns();

    if (dropped != al->dropped_seen || !all_written) {
        al->dropped_seen = dropped;
        al->calm_since_ns = now_ns;
    } else if (now_ns - al->calm_since_ns >= ACCESS_LOG_CALM_NS) {
        al->calm_since_ns = now_ns;
        if (access_log_has_recovered(al))
            access_log_end_episode(al);
    }
}

static void access_log_run(struct task *t)
{
    struct access_log *al = TIMER_OWNER(t, struct access_log, writer);
    int rc;

    atomic_exchange(&al->scheduled, false);
    rc = access_log_write(al);
    if (atomic_load(&al->losing))
        access_log_watch(al, rc == 0);
    if (rc < 0)
        access_log_schedule(al, rc == -EAGAIN ? ACCESS_LOG_AGAIN_NS : 0);
    else if (atomic_load(&al->losing))
        access_log_schedule(al, ACCESS_LOG_WATCH_NS);
}

/* No drop(): access_log_finish() writes the queue. */
static const struct task_type access_log_type = {.name = "access log", .run = access_log_run};

int access_log_create(struct access_log **out, const struct access_log_conf *conf)
{
    const struct executor_conf thread = {.name = "alog", .pool = conf->pool, .threads = 1};
    struct access_log *al = aligned_alloc(alignof(struct access_log), sizeof(*al));
    int rc;

    if (!al)
        return -ENOMEM;
    memset(al, 0, offsetof(struct access_log, batch));
    rc = executor_create(&al->executor, &thread);
    if (rc < 0) {
        free(al);
        return rc;
    }
    ref_init(&al->references);
    al->conf = *conf;
    access_log_set_max_bytes(al, conf->max_bytes);
    queue_init(&al->lines);
    timer_init(&al->writer, &access_log_type);
    *out = al;
    return 0;
}

static uint64_t access_log_discard(struct access_log *al)
{
    uint64_t n = access_log_clear_batch(al);

    while (!queue_empty(&al->lines)) {
        struct task *place;

        queue_take(&al->lines);
        while ((place = queue_pop(&al->lines))) {
            free(CONTAINER_OF(place, struct access_line, place));
            n++;
        }
    }
    atomic_store_explicit(&al->waiting_bytes, 0, memory_order_relaxed);
    return n;
}

int access_log_finish(struct access_log *al, int64_t until_ns)
{
    const struct timespec pause = {.tv_nsec = ACCESS_LOG_DELAY_NS};
    int64_t join_ns = until_ns - clock_now_ns();
    uint64_t dropped;
    int rc;

    executor_stop(al->executor, 0);
    rc = executor_join(al->executor, join_ns > ACCESS_LOG_JOIN_NS ? join_ns : ACCESS_LOG_JOIN_NS);
    if (rc < 0) {
        log_error("access log %s: a write hangs: queued lines cannot be written", al->conf.name);
        return rc;
    }
    while ((rc = access_log_write(al)) < 0 && clock_now_ns() < until_ns)
        if (rc == -EAGAIN)
            nanosleep(&pause, NULL);
    dropped = atomic_load(&al->dropped) + access_log_discard(al);
    atomic_store(&al->dropped, dropped);
    if (dropped > al->dropped_before)
        log_warning("access log %s: closed, not all lines are written; lines dropped: %" PRIu64,
                    al->conf.name, dropped - al->dropped_before);
    return 0;
}

void access_log_stats(const struct access_log *al, struct access_log_stats *out)
{
    *out = (struct access_log_stats){
        .lines = atomic_load_explicit(&al->written, memory_order_relaxed),
        .dropped = atomic_load_explicit(&al->dropped, memory_order_relaxed),
        .waiting_bytes = atomic_load_explicit(&al->waiting_bytes, memory_order_relaxed)};
}

void access_log_destroy(struct access_log *al)
{
    if (!al)
        return;
    access_log_discard(al);
    executor_destroy(al->executor);
    free(al);
}
