/*
 * sessions/session_query: lists sessions of all workers, sorted, in pages.
 *
 *   begin -> the workers' best rows are merged, in steps -> answered()
 *
 * Pages are stateless: a cursor is the sort key of a page's last row. Sorted by age, each session
 * that stays open meanwhile is listed exactly once, and sessions begun after the first page are not
 * listed. A session with I/O between pages may be listed again (sorted by idle time or load) or
 * missed (sorted by bytes or load).
 */
#ifndef SESSIONS_SESSION_QUERY_H
#define SESSIONS_SESSION_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "sessions/session_filter.h"
#include "stats/session_id.h"

struct session_row;
struct session_scan_workers;

#define SESSION_QUERY_LIMIT_MAX 1000

enum session_query_sort {
    SESSION_QUERY_AGE,
    SESSION_QUERY_IDLE,
    SESSION_QUERY_BYTES,
    SESSION_QUERY_LOAD
};

#define SESSION_QUERY_SORTS 4

/* Position behind a row in the sort order; `began_at_ns` is the time of the first page. */
struct session_query_cursor {
    enum session_query_sort sort;
    int64_t began_at_ns; /* 0: no cursor */
    int64_t rank;
    struct session_id id;
};

#define SESSION_QUERY_CURSOR_BYTES 96

struct session_query_page {
    struct session_row **rows; /* best first */
    unsigned n;
    uint64_t matched; /* number of matching sessions, on all pages */
    bool is_last;
    struct session_query_cursor next; /* cursor of the next page; unset on the last page */
};

struct session_query_conf {
    struct session_filter filter;
    enum session_query_sort sort;
    unsigned limit;                    /* rows, 1 to SESSION_QUERY_LIMIT_MAX */
    struct session_query_cursor after; /* cursor of the same sort; began_at_ns 0: first page */
    /*
     * Called once on the asking loop, unless the loop has ended. The callee owns ${page}; NULL: out
     * of memory.
     */
    void (*answered)(void *cookie, struct session_query_page *page);
    void *cookie;
};

/*
 * session_query_begin(workers, conf):
 * Ask all workers for their best rows; answered() gets a page of the best.
 *
 * Thread: any loop; it is the asking loop
 * Owns:   ${conf} is copied; what ${workers} points at must outlive the workers' loops
 * Errors: as session_scan_begin(); then answered() is not called
 */
int session_query_begin(const struct session_scan_workers *workers,
                        const struct session_query_conf *conf) NODISCARD;

/* session_query_page_free(page): free ${page}; NULL is allowed. */
void session_query_page_free(struct session_query_page *page);

/*
 * session_query_sort_of(out, word):
 * Parse `age`, `idle`, `bytes` or `load`.
 *
 * Errors: 0; -EINVAL
 */
int session_query_sort_of(enum session_query_sort *out, const char *word) NODISCARD;

/*
 * session_query_cursor_format(text, c) / session_query_cursor_parse(out, text):
 * Write ${c} to ${text} of SESSION_QUERY_CURSOR_BYTES and return ${text} / parse ${text}.
 *
 * Errors: 0; -EINVAL
 */
const char *session_query_cursor_format(char *text, const struct session_query_cursor *c);
int session_query_cursor_parse(struct session_query_cursor *out, const char *text) NODISCARD;

#endif
