/* admin/session_page: answers a request with a page of sessions, written in bounded steps. */
#ifndef ADMIN_SESSION_PAGE_H
#define ADMIN_SESSION_PAGE_H

struct admin_request;
struct session_query_page;

/*
 * session_page_answer(rq, page):
 * Answer ${rq} with ${page}, now or in a later turn.
 *
 * Thread: admin loop
 * Owns:   takes ${page}
 */
void session_page_answer(struct admin_request *rq, struct session_query_page *page);

#endif
