#include "server/session_shed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"
#include "server/session_scan.h"
#include "server/session_set.h"
#include "service/session.h"

struct session_shed_entry {
    uint64_t order; /* session.order */
    int64_t active_at_ns;
    int64_t leave_at_ns; /* CLOCK_NEVER: not chosen */
};

/* In chunks: a longer list is never copied. */
struct session_shed_chunk {
    struct list link;
    unsigned n;
    struct session_shed_entry entries[SESSION_SET_STEP];
};

/* Sessions of one worker, in the order of session_set. */
struct session_shed_part {
    struct list chunks;
    uint64_t n;
    bool has_failed; /* no memory */
    /* second scan */
    unsigned next; /* of the first chunk left */
    uint64_t told;
};

struct session_shed {
    struct session_shed_conf conf;
    struct session_scan_workers workers;
    unsigned n_parts;
    struct session_shed_part parts[];
};

static struct session_shed_chunk *session_shed_first(const struct session_shed_part *part)
{
    return list_empty(&part->chunks) ? NULL
                                     : LIST_FIRST(&part->chunks, struct session_shed_chunk, link);
}

static struct session_shed_chunk *session_shed_last(const struct session_shed_part *part)
{
    return list_empty(&part->chunks)
               ? NULL
               : LIST_ENTRY(part->chunks.prev, struct session_shed_chunk, link);
}

static void session_shed_drop_first(struct session_shed_part *part)
{
    struct session_shed_chunk *chunk = session_shed_first(part);

    list_remove(&chunk->link);
    free(chunk);
    part->next = 0;
}

static void session_shed_free(struct session_shed *shed)
{
    for (unsigned i = 0; i < shed->n_parts; i++)
        while (session_shed_first(&shed->parts[i]))
            session_shed_drop_first(&shed->parts[i]);
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

static struct session_shed_chunk *session_shed_room(struct session_shed_part *part)
{
    struct session_shed_chunk *chunk = session_shed_last(part);

    if (chunk && chunk->n < SESSION_SET_STEP)
        return chunk;
    chunk = malloc(sizeof(*chunk));
    if (!chunk)
        return NULL;
    chunk->n = 0;
    list_append(&part->chunks, &chunk->link);
    return chunk;
}

static bool session_shed_list(void *cookie, unsigned number, struct session *s)
{
    struct session_shed *shed = cookie;
    struct session_shed_part *part = &shed->parts[number];
    int64_t now_ns = clock_now_ns();
    struct session_shed_chunk *chunk;

    if (part->has_failed || s->closing ||
        s->expires_at_ns <= clock_add_ns(now_ns, shed->conf.over_ns) ||
        !session_filter_matches(&shed->conf.filter, s, now_ns))
        return false;
    chunk = session_shed_room(part);
    part->has_failed = !chunk;
    if (!chunk)
        return false;
    chunk->entries[chunk->n++] = (struct session_shed_entry){
        .order = s->order, .active_at_ns = session_active_at_ns(s), .leave_at_ns = CLOCK_NEVER};
    part->n++;
    return false;
}

/* ---- second scan: tell ---- */

/* The entry of ${s}, or NULL. Both lists are in the same order. */
static const struct session_shed_entry *session_shed_find(struct session_shed_part *part,
                                                          const struct session *s)
{
    struct session_shed_chunk *chunk;

    while ((chunk = session_shed_first(part))) {
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

    if (!entry || entry->leave_at_ns == CLOCK_NEVER || s->ending || s->closing)
        return false;
    session_leave_by(s, entry->leave_at_ns);
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

static int session_shed_compare(const void *a, const void *b)
{
    int64_t first_ns = (*(struct session_shed_entry *const *)a)->active_at_ns;
    int64_t second_ns = (*(struct session_shed_entry *const *)b)->active_at_ns;

    return (first_ns > second_ns) - (first_ns < second_ns);
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

static void session_shed_collect(const struct session_shed *shed, struct session_shed_entry **all)
{
    size_t n = 0;

    for (unsigned i = 0; i < shed->n_parts; i++)
        list_for_each (node, &shed->parts[i].chunks) {
            struct session_shed_chunk *chunk = LIST_ENTRY(node, struct session_shed_chunk, link);

            for (unsigned e = 0; e < chunk->n; e++)
                all[n++] = &chunk->entries[e];
        }
}

/* False: no memory. */
static bool session_shed_choose(const struct session_shed *shed)
{
    bool has_failed = false;
    uint64_t n = session_shed_count(shed, &has_failed);
    uint64_t chosen = (n * shed->conf.percent + 99) / 100;
    struct session_shed_entry **all = calloc(n + 1, sizeof(struct session_shed_entry *));
    int64_t now_ns = clock_now_ns();

    if (has_failed || !all) {
        free(all);
        return false;
    }
    session_shed_collect(shed, all);
    qsort(all, n, sizeof(struct session_shed_entry *), session_shed_compare);
    for (uint64_t i = 0; i < chosen; i++)
        all[i]->leave_at_ns =
            now_ns + (int64_t)((double)shed->conf.over_ns / (double)chosen * (double)(i + 1));
    free(all);
    return true;
}

static void session_shed_listed(void *cookie)
{
    struct session_shed *shed = cookie;

    if (session_shed_choose(shed) &&
        session_scan_begin(&shed->workers, shed->n_parts, &session_shed_tell_ops, shed) == 0)
        return;
    session_shed_answer(shed, -ENOMEM);
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
    shed->n_parts = n;
    for (unsigned i = 0; i < n; i++)
        list_init(&shed->parts[i].chunks);
    rc = session_scan_begin(workers, n, &session_shed_list_ops, shed);
    if (rc < 0)
        session_shed_free(shed);
    return rc;
}
