#include "sessions/session_shed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/list.h"
#include "engine/loop.h"
#include "service/session.h"
#include "sessions/session_scan.h"
#include "sessions/session_set.h"

struct session_shed_entry {
    uint64_t order; /* session.order */
    int64_t active_at_ns;
    int64_t leave_by_ns; /* latest end; once chosen, the instant of the end */
    bool is_chosen;
};

/* A list is made of chunks, so that it grows without being copied. */
struct session_shed_chunk {
    struct list link;
    unsigned n;
    struct session_shed_entry entries[SESSION_SET_STEP];
};

/* Sessions of one worker, in the order of session_set. */
struct session_shed_part {
    struct list listed; /* chunks of the first scan */
    struct list chunks; /* chunks whose entries are in session_shed.idlest */
    uint64_t n;
    bool has_failed; /* no memory */
    /* second scan */
    unsigned next; /* next entry in the first of `chunks` */
    uint64_t told; /* sessions that got their instant */
};

struct session_shed {
    struct session_shed_conf conf;
    struct session_scan_workers workers;
    int64_t began_at_ns;
    struct task choose;
    struct heap idlest; /* entries that are not chosen yet */
    uint64_t n_to_choose, n_chosen;
    unsigned next_part; /* next part to be added to `idlest` */
    unsigned n_parts;
    struct session_shed_part parts[];
};

static struct session_shed_chunk *session_shed_first(const struct list *chunks)
{
    return list_empty(chunks) ? NULL : LIST_FIRST(chunks, struct session_shed_chunk, link);
}

static struct session_shed_chunk *session_shed_last(const struct list *chunks)
{
    return list_empty(chunks) ? NULL : LIST_ENTRY(chunks->prev, struct session_shed_chunk, link);
}

static void session_shed_drop_first(struct session_shed_part *part)
{
    struct session_shed_chunk *chunk = session_shed_first(&part->chunks);

    list_remove(&chunk->link);
    free(chunk);
    part->next = 0;
}

static void session_shed_free(struct session_shed *shed)
{
    for (unsigned i = 0; i < shed->n_parts; i++) {
        list_append_all(&shed->parts[i].chunks, &shed->parts[i].listed);
        while (session_shed_first(&shed->parts[i].chunks))
            session_shed_drop_first(&shed->parts[i]);
    }
    free(shed->idlest.items);
    free(shed);
}

static void session_shed_lost(void *cookie)
{
    session_shed_free(cookie);
}

static void session_shed_answer(struct session_shed *shed, int64_t n)
{
    shed->conf.answered(shed->conf.cookie, n);
    session_shed_free(shed);
}

/* ---- first scan: list ---- */

static struct session_shed_chunk *session_shed_chunk_for_one(struct session_shed_part *part)
{
    struct session_shed_chunk *chunk = session_shed_last(&part->listed);

    if (chunk && chunk->n < SESSION_SET_STEP)
        return chunk;
    chunk = malloc(sizeof(*chunk));
    if (!chunk)
        return NULL;
    chunk->n = 0;
    list_append(&part->listed, &chunk->link);
    return chunk;
}

/* Latest end of ${s}; CLOCK_NEVER: ${s} stays. */
static int64_t session_shed_leave_by_ns(const struct session_shed *shed, struct session *s)
{
    int64_t leave_by_ns = clock_add_ns(shed->began_at_ns, shed->conf.over_ns);

    if (shed->conf.leave_by_ns)
        return shed->conf.leave_by_ns(s);
    if (s->phase >= SESSION_PHASE_CLOSING || s->expires_at_ns <= leave_by_ns ||
        !session_filter_matches(&shed->conf.filter, s, clock_now_ns()))
        return CLOCK_NEVER;
    return leave_by_ns;
}

static bool session_shed_list(void *cookie, unsigned number, struct session *s)
{
    struct session_shed *shed = cookie;
    struct session_shed_part *part = &shed->parts[number];
    int64_t leave_by_ns = session_shed_leave_by_ns(shed, s);
    struct session_shed_chunk *chunk;

    if (part->has_failed || leave_by_ns == CLOCK_NEVER)
        return false;
    chunk = session_shed_chunk_for_one(part);
    part->has_failed = !chunk;
    if (!chunk)
        return false;
    chunk->entries[chunk->n++] = (struct session_shed_entry){
        .order = s->order, .active_at_ns = session_active_at_ns(s), .leave_by_ns = leave_by_ns};
    part->n++;
    return false;
}

/* ---- second scan: tell ---- */

/* Find the entry of ${s}, or NULL. Entries and scan are in the same order. */
static const struct session_shed_entry *session_shed_find(struct session_shed_part *part,
                                                          const struct session *s)
{
    struct session_shed_chunk *chunk;

    while ((chunk = session_shed_first(&part->chunks))) {
        for (; part->next < chunk->n; part->next++)
            if (chunk->entries[part->next].order >= s->order)
                return chunk->entries[part->next].order == s->order ? &chunk->entries[part->next]
                                                                    : NULL;
        session_shed_drop_first(part);
    }
    return NULL;
}

static bool session_shed_tell(void *cookie, unsigned number, struct session *s)
{
    struct session_shed *shed = cookie;
    const struct session_shed_entry *entry = session_shed_find(&shed->parts[number], s);

    if (!entry || !entry->is_chosen || s->phase >= SESSION_PHASE_CLOSING)
        return false;
    session_leave_by(s, entry->leave_by_ns);
    shed->parts[number].told++;
    return false;
}

static void session_shed_told(void *cookie)
{
    struct session_shed *shed = cookie;
    int64_t n = 0;

    for (unsigned i = 0; i < shed->n_parts; i++)
        n += (int64_t)shed->parts[i].told;
    session_shed_answer(shed, n);
}

static const struct session_scan_ops session_shed_tell_ops = {
    .visit = session_shed_tell, .done = session_shed_told, .lost = session_shed_lost};

/* ---- the asking loop, between the scans ---- */

static bool session_shed_is_idler(const void *a, const void *b)
{
    const struct session_shed_entry *first = a, *second = b;

    return first->active_at_ns < second->active_at_ns;
}

static uint64_t session_shed_count(const struct session_shed *shed, bool *has_failed)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < shed->n_parts; i++) {
        n += shed->parts[i].n;
        *has_failed |= shed->parts[i].has_failed;
    }
    return n;
}

/* Add the next chunk of a part to `idlest`; false: no chunk is left. */
static bool session_shed_collect(struct session_shed *shed)
{
    for (; shed->next_part < shed->n_parts; shed->next_part++) {
        struct session_shed_part *part = &shed->parts[shed->next_part];
        struct session_shed_chunk *chunk = session_shed_first(&part->listed);

        if (!chunk)
            continue;
        for (unsigned i = 0; i < chunk->n; i++)
            heap_add(&shed->idlest, &chunk->entries[i]);
        list_remove(&chunk->link);
        list_append(&part->chunks, &chunk->link);
        return true;
    }
    return false;
}

static void session_shed_choose(struct session_shed *shed)
{
    struct session_shed_entry *entry = heap_take(&shed->idlest);
    double share = (double)++shed->n_chosen / (double)shed->n_to_choose;
    double left_ns = (double)(entry->leave_by_ns - shed->began_at_ns);

    entry->is_chosen = true;
    entry->leave_by_ns = shed->began_at_ns + (int64_t)(left_ns * share);
}

/* Collect and choose for one step; true: all are chosen. */
static bool session_shed_step(struct session_shed *shed)
{
    struct budget step;

    session_set_step_begin(&step);
    while (session_shed_collect(shed))
        if (budget_step_over(&step, true))
            return false;
    while (shed->n_chosen < shed->n_to_choose) {
        session_shed_choose(shed);
        if (budget_step_over(&step, false))
            return false;
    }
    return true;
}

static void session_shed_run_choose(struct task *t)
{
    struct session_shed *shed = CONTAINER_OF(t, struct session_shed, choose);

    if (!session_shed_step(shed)) {
        if (loop_submit(loop_current(), LOOP_TAIL, t) < 0)
            session_shed_free(shed);
        return;
    }
    if (session_scan_begin(&shed->workers, shed->n_parts, &session_shed_tell_ops, shed) < 0)
        session_shed_answer(shed, -ENOMEM);
}

static void session_shed_drop_choose(struct task *t)
{
    session_shed_free(CONTAINER_OF(t, struct session_shed, choose));
}

static const struct task_type session_shed_choose_type = {
    .name = "choose sessions", .run = session_shed_run_choose, .drop = session_shed_drop_choose};

static void session_shed_listed(void *cookie)
{
    struct session_shed *shed = cookie;
    bool has_failed = false;
    uint64_t n = session_shed_count(shed, &has_failed);

    shed->n_to_choose = (n * shed->conf.percent + 99) / 100;
    shed->idlest =
        (struct heap){.items = calloc(n + 1, sizeof(void *)), .before = session_shed_is_idler};
    if (has_failed || !shed->idlest.items)
        session_shed_answer(shed, -ENOMEM);
    else
        session_shed_run_choose(&shed->choose);
}

static const struct session_scan_ops session_shed_list_ops = {
    .visit = session_shed_list, .done = session_shed_listed, .lost = session_shed_lost};

int session_shed_begin(const struct session_scan_workers *workers,
                       const struct session_shed_conf *conf)
{
    unsigned n = session_scan_parts(workers);
    struct session_shed *shed = calloc(1, sizeof(*shed) + n * sizeof(shed->parts[0]));
    int rc;

    MUST(conf->percent > 0 && conf->percent <= 100);
    if (!shed)
        return -ENOMEM;
    shed->conf = *conf;
    shed->conf.filter.only_connected = true;
    shed->workers = *workers;
    shed->began_at_ns = clock_now_ns();
    shed->choose.type = &session_shed_choose_type;
    shed->n_parts = n;
    for (unsigned i = 0; i < n; i++) {
        list_init(&shed->parts[i].listed);
        list_init(&shed->parts[i].chunks);
    }
    rc = session_scan_begin(workers, n, &session_shed_list_ops, shed);
    if (rc < 0)
        session_shed_free(shed);
    return rc;
}
