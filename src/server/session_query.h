/*
 * server/session_query: lists sessions of all workers, sorted, in pages.
 *
 *   begin -> the workers' best rows are merged, in steps -> answered()
 *
 * Pages are stateless: a cursor is the place of a page's last row. By age, every session that stays
 * open meanwhile is listed exactly once, and sessions that began after the first page are not
 * listed. By idle time, a session may be listed again after I/O; by bytes, it may be missed after
 * more bytes.
 */
#ifndef SERVER_SESSION_QUERY_H
#define SERVER_SESSION_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "server/session_filter.h"
#include "stats/session_id.h"

struct session_row;
struct session_scan_workers;

#define SESSION_QUERY_LIMIT_MAX 1000

enum session_query_sort { SESSION_QUERY_AGE, SESSION_QUERY_IDLE, SESSION_QUERY_BYTES };

#define SESSION_QUERY_SORTS 3

/* Place behind a row; `began_at_ns` is the time of the first page. */
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
    struct session_query_cursor after; /* of the same sort; began_at_ns 0: the first page */
    /*
     * Called once on the asking loop, unless the loop has ended, with a page that the callee owns;
     * NULL: no memory.
     */
    void (*answered)(void *cookie, struct session_query_page *page);
    void *cookie;
};

/*
 * session_query_begin(workers, conf):
 * Ask all workers.
 *
 * Thread: a loop, the asking one
 * Owns:   ${conf} is copied; what ${workers} points at must outlive the workers' loops
 * Errors: as session_scan_begin(); then answered() is not called
 */
int session_query_begin(const struct session_scan_workers *workers,
                        const struct session_query_conf *conf) NODISCARD;

/*
 * session_query_page_free(page):
 * Free ${page}, or NULL.
 *
 * Thread: any
 */
void session_query_page_free(struct session_query_page *page);

/*
 * session_query_sort_of(out, word):
 * Parse `age`, `idle` or `bytes`.
 *
 * Thread: any
 * Errors: 0; -EINVAL
 */
int session_query_sort_of(enum session_query_sort *out, const char *word) NODISCARD;

/*
 * session_query_cursor_format(text, c) / session_query_cursor_parse(out, text):
 * Write ${c} to SESSION_QUERY_CURSOR_BYTES, return ${text} / parse it.
 *
 * Thread: any
 * Errors: 0; -EINVAL
 */
const char *session_query_cursor_format(char *text, const struct session_query_cursor *c);
int session_query_cursor_parse(struct session_query_cursor *out, const char *text) NODISCARD;

#endif
