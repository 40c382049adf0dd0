#include "server/session_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/session_row.h"
#include "server/session_scan.h"
#include "service/session.h"

/* The best rows of a worker: a heap, the worst on top. */
struct session_query_part {
    struct session_row **rows;
    unsigned n;
    uint64_t matched;
    uint64_t behind; /* sessions that match, behind the cursor */
    bool has_failed; /* no memory */
};

struct session_query {
    struct session_query_conf conf;
    int64_t began_at_ns; /* of the first page */
    int64_t asked_at_ns; /* one instant for all ages: they stay in order */
    unsigned n_parts;
    struct session_query_part parts[];
};

/* Place in the order, the best first. */
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

static int session_query_compare_rows(const struct session_row *a, const struct session_row *b)
{
    struct session_query_place first = session_query_place_of(a),
                               second = session_query_place_of(b);

    return session_query_compare(&first, &second);
}

/* ---- a worker's heap ---- */

static void session_query_swap(struct session_query_part *part, unsigned i, unsigned j)
{
    struct session_row *row = part->rows[i];

    part->rows[i] = part->rows[j];
    part->rows[j] = row;
}

static void session_query_rise(struct session_query_part *part, unsigned at)
{
    while (at > 0 && session_query_compare_rows(part->rows[at], part->rows[(at - 1) / 2]) > 0) {
        session_query_swap(part, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static void session_query_sink(struct session_query_part *part)
{
    unsigned at = 0, child;

    while ((child = 2 * at + 1) < part->n) {
        if (child + 1 < part->n &&
            session_query_compare_rows(part->rows[child + 1], part->rows[child]) > 0)
            child++;
        if (session_query_compare_rows(part->rows[child], part->rows[at]) <= 0)
            return;
        session_query_swap(part, at, child);
        at = child;
    }
}

static bool session_query_is_better(const struct session_query_part *part, unsigned limit,
                                    const struct session_query_place *place)
{
    struct session_query_place worst;

    if (part->n < limit)
        return true;
    worst = session_query_place_of(part->rows[0]);
    return session_query_compare(place, &worst) < 0;
}

static void session_query_keep(struct session_query_part *part, unsigned limit,
                               struct session_row *row)
{
    if (part->n < limit) {
        part->rows[part->n++] = row;
        session_query_rise(part, part->n - 1);
        return;
    }
    free(part->rows[0]);
    part->rows[0] = row;
    session_query_sink(part);
}

/* ---- worker ---- */

static int64_t session_query_rank(const struct session_query *q, const struct session *s)
{
    const struct channel *client = s->legs[0];

    switch (q->conf.sort) {
    case SESSION_QUERY_IDLE: return clock_sooner(session_active_at_ns(s), q->began_at_ns);
    case SESSION_QUERY_BYTES: return client ? -(int64_t)(client->bytes_in + client->bytes_out) : 0;
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
        for (unsigned r = 0; r < q->parts[i].n; r++)
            free(q->parts[i].rows[r]);
        free(q->parts[i].rows);
    }
    free(q);
}

static int session_query_compare_pointers(const void *a, const void *b)
{
    return session_query_compare_rows(*(struct session_row *const *)a,
                                      *(struct session_row *const *)b);
}

/* Move the best rows of all parts to ${page}. False: no memory. */
static bool session_query_merge(struct session_query *q, struct session_query_page *page)
{
    size_t n = 0;

    for (unsigned i = 0; i < q->n_parts; i++) {
        n += q->parts[i].n;
        if (q->parts[i].has_failed)
            return false;
    }
    page->rows = calloc(n + 1, sizeof(struct session_row *));
    if (!page->rows)
        return false;
    n = 0;
    for (unsigned i = 0; i < q->n_parts; i++) {
        memcpy(&page->rows[n], q->parts[i].rows, q->parts[i].n * sizeof(struct session_row *));
        n += q->parts[i].n;
        q->parts[i].n = 0;
    }
    qsort(page->rows, n, sizeof(struct session_row *), session_query_compare_pointers);
    while (n > q->conf.limit)
        free(page->rows[--n]);
    page->n = (unsigned)n;
    return true;
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

static void session_query_done(void *cookie)
{
    struct session_query *q = cookie;
    struct session_query_page *page = calloc(1, sizeof(*page));

    if (page && session_query_merge(q, page)) {
        session_query_finish(q, page);
    } else {
        session_query_page_free(page);
        page = NULL;
    }
    q->conf.answered(q->conf.cookie, page);
    session_query_free(q);
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
    q->asked_at_ns = clock_now_ns();
    q->began_at_ns = conf->after.began_at_ns > 0 ? conf->after.began_at_ns : q->asked_at_ns;
    for (; q->n_parts < n && rc == 0; q->n_parts++) {
        struct session_query_part *part = &q->parts[q->n_parts];

        part->rows = calloc(conf->limit, sizeof(struct session_row *));
        rc = part->rows ? 0 : -ENOMEM;
    }
    if (rc == 0)
        rc = session_scan_begin(workers, n, &session_query_ops, q);
    if (rc < 0)
        session_query_free(q);
    return rc;
}
