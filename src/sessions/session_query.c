#include "sessions/session_query.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/heap.h"
#include "engine/loop.h"
#include "service/session.h"
#include "sessions/session_row.h"
#include "sessions/session_scan.h"
#include "sessions/session_set.h"

/* The best rows of a worker. */
struct session_query_part {
    struct heap rows; /* a heap with the worst row on top */
    uint64_t matched;
    uint64_t behind; /* matching sessions behind the cursor */
    bool has_failed; /* no memory */
};

struct session_query {
    struct session_query_conf conf;
    int64_t began_at_ns; /* time of the first page */
    int64_t asked_at_ns; /* one instant for all ages, to keep their order */
    struct task merge;
    struct session_query_page *page; /* the page that the merge fills */
    size_t n_left;                   /* rows in the parts */
    unsigned n_parts;
    struct session_query_part parts[];
};

/* Place in the sort order; the best row is first. */
struct session_query_place {
    int64_t rank;
    struct session_id id;
};

static int session_query_compare_id(const struct session_id *a, const struct session_id *b)
{
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    return (a->low > b->low) - (a->low < b->low);
}

static int session_query_compare(const struct session_query_place *a,
                                 const struct session_query_place *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return session_query_compare_id(&a->id, &b->id);
}

static struct session_query_place session_query_place_of(const struct session_row *row)
{
    return (struct session_query_place){.rank = row->rank, .id = row->id};
}

static bool session_query_is_worse(const void *a, const void *b)
{
    struct session_query_place first = session_query_place_of(a),
                               second = session_query_place_of(b);

    return session_query_compare(&first, &second) > 0;
}

/* ---- worker ---- */

static bool session_query_is_better(const struct session_query_part *part, unsigned limit,
                                    const struct session_query_place *place)
{
    struct session_query_place worst;

    if (part->rows.n < limit)
        return true;
    worst = session_query_place_of(heap_first(&part->rows));
    return session_query_compare(place, &worst) < 0;
}

static void session_query_keep(struct session_query_part *part, unsigned limit,
                               struct session_row *row)
{
    if (part->rows.n == limit)
        free(heap_take(&part->rows));
    heap_add(&part->rows, row);
}

static int64_t session_query_rank(const struct session_query *q, const struct session *s)
{
    const struct channel *client = s->legs[0];

    switch (q->conf.sort) {
    case SESSION_QUERY_IDLE: return clock_sooner(session_active_at_ns(s), q->began_at_ns);
    case SESSION_QUERY_BYTES: return client ? -(int64_t)(client->bytes_in + client->bytes_out) : 0;
    case SESSION_QUERY_LOAD: return -(int64_t)session_load_us(s, q->asked_at_ns);
    case SESSION_QUERY_AGE: break;
    }
    return s->began_at_ns;
}

static bool session_query_is_behind(const struct session_query *q, const struct session *s,
                                    const struct session_query_place *place)
{
    const struct session_query_cursor *after = &q->conf.after;
    struct session_query_place last = {.rank = after->rank, .id = after->id};

    if (after->began_at_ns == 0)
        return true;
    return s->began_at_ns <= q->began_at_ns && session_query_compare(place, &last) > 0;
}

static bool session_query_visit(void *cookie, unsigned number, struct session *s)
{
    struct session_query *q = cookie;
    struct session_query_part *part = &q->parts[number];
    struct session_query_place place;
    struct session_row *row;

    if (part->has_failed || !session_filter_matches(&q->conf.filter, s, q->asked_at_ns))
        return false;
    part->matched++;
    place = (struct session_query_place){.rank = session_query_rank(q, s), .id = *session_id(s)};
    if (!session_query_is_behind(q, s, &place))
        return false;
    part->behind++;
    if (!session_query_is_better(part, q->conf.limit, &place))
        return false;
    if (session_row_create(&row, s, q->asked_at_ns) < 0) {
        part->has_failed = true;
        return false;
    }
    row->rank = place.rank;
    session_query_keep(part, q->conf.limit, row);
    return false;
}

/* ---- the asking loop ---- */

static void session_query_free(struct session_query *q)
{
    for (unsigned i = 0; i < q->n_parts; i++) {
        for (size_t r = 0; r < q->parts[i].rows.n; r++)
            free(q->parts[i].rows.items[r]);
        free(q->parts[i].rows.items);
    }
    session_query_page_free(q->page);
    free(q);
}

/* Take the worst of the rows that are left in the parts. */
static struct session_row *session_query_take_worst(struct session_query *q)
{
    struct session_query_part *worst = NULL;

    for (unsigned i = 0; i < q->n_parts; i++)
        if (q->parts[i].rows.n > 0 &&
            (!worst ||
             session_query_is_worse(heap_first(&q->parts[i].rows), heap_first(&worst->rows))))
            worst = &q->parts[i];
    q->n_left--;
    return heap_take(&worst->rows);
}

/* Move one row to the page, which is filled from its end. */
static void session_query_merge_row(struct session_query *q)
{
    struct session_row *row = session_query_take_worst(q);

    if (q->n_left >= q->conf.limit)
        free(row);
    else
        q->page->rows[q->n_left] = row;
}

static void session_query_finish(const struct session_query *q, struct session_query_page *page)
{
    uint64_t behind = 0;

    for (unsigned i = 0; i < q->n_parts; i++) {
        page->matched += q->parts[i].matched;
        behind += q->parts[i].behind;
    }
    page->is_last = behind <= page->n;
    if (page->is_last)
        return;
    page->next = (struct session_query_cursor){.sort = q->conf.sort,
                                               .began_at_ns = q->began_at_ns,
                                               .rank = page->rows[page->n - 1]->rank,
                                               .id = page->rows[page->n - 1]->id};
}

void session_query_page_free(struct session_query_page *page)
{
    if (!page)
        return;
    for (unsigned i = 0; i < page->n; i++)
        free(page->rows[i]);
    free(page->rows);
    free(page);
}

static void session_query_answer(struct session_query *q)
{
    struct session_query_page *page = q->page;

    q->page = NULL;
    q->conf.answered(q->conf.cookie, page);
    session_query_free(q);
}

static void session_query_drop_merge(struct task *t)
{
    session_query_free(CONTAINER_OF(t, struct session_query, merge));
}

static void session_query_run_merge(struct task *t)
{
    struct session_query *q = CONTAINER_OF(t, struct session_query, merge);
    struct budget step;

    session_set_step_begin(&step);
    while (q->n_left > 0) {
        session_query_merge_row(q);
        if (!budget_step_over(&step, false))
            continue;
        if (loop_submit(loop_current(), LOOP_TAIL, t) < 0)
            session_query_free(q);
        return;
    }
    session_query_finish(q, q->page);
    session_query_answer(q);
}

static const struct task_type session_query_merge_type = {
    .name = "merge sessions", .run = session_query_run_merge, .drop = session_query_drop_merge};

/* Create an empty page for the rows of all parts; NULL: no memory. */
static struct session_query_page *session_query_page(struct session_query *q)
{
    struct session_query_page *page = calloc(1, sizeof(*page));

    for (unsigned i = 0; i < q->n_parts; i++) {
        q->n_left += q->parts[i].rows.n;
        if (q->parts[i].has_failed) {
            free(page);
            return NULL;
        }
    }
    if (!page)
        return NULL;
    page->n = q->n_left < q->conf.limit ? (unsigned)q->n_left : q->conf.limit;
    page->rows = calloc(page->n + 1, sizeof(struct session_row *));
    if (page->rows)
        return page;
    free(page);
    return NULL;
}

static void session_query_done(void *cookie)
{
    struct session_query *q = cookie;

    q->page = session_query_page(q);
    if (q->page)
        session_query_run_merge(&q->merge);
    else
        session_query_answer(q);
}

static void session_query_lost(void *cookie)
{
    session_query_free(cookie);
}

static const struct session_scan_ops session_query_ops = {
    .visit = session_query_visit, .done = session_query_done, .lost = session_query_lost};

int session_query_begin(const struct session_scan_workers *workers,
                        const struct session_query_conf *conf)
{
    unsigned n = session_scan_parts(workers);
    struct session_query *q = calloc(1, sizeof(*q) + n * sizeof(q->parts[0]));
    int rc = 0;

    MUST(conf->limit > 0 && conf->limit <= SESSION_QUERY_LIMIT_MAX);
    if (!q)
        return -ENOMEM;
    q->conf = *conf;
    q->merge.type = &session_query_merge_type;
    q->asked_at_ns = clock_now_ns();
    q->began_at_ns = conf->after.began_at_ns > 0 ? conf->after.began_at_ns : q->asked_at_ns;
    for (; q->n_parts < n && rc == 0; q->n_parts++) {
        struct session_query_part *part = &q->parts[q->n_parts];

        part->rows = (struct heap){.items = calloc(conf->limit, sizeof(void *)),
                                   .before = session_query_is_worse};
        rc = part->rows.items ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = session_scan_begin(workers, n, &session_query_ops, q);
    if (rc < 0)
        session_query_free(q);
    return rc;
}
