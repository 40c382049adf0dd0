/*
 * sessions/session_idlest: finds the sessions of a worker that have been without I/O for longest.
 *
 *   begin -> step ... step (true: all visited) -> take ... take (NULL: none left) -> end
 *
 * Steps and takes may be in different tasks; a session that is removed meanwhile is left out.
 */
#ifndef SESSIONS_SESSION_IDLEST_H
#define SESSIONS_SESSION_IDLEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "sessions/session_set.h"

struct session;

#define SESSION_IDLEST_MAX 64

struct session_idlest_entry {
    int64_t at_ns;
    struct session *session;
};

struct session_idlest {
    struct session_set_walk walk;
    int64_t (*at_ns)(const struct session *s);
    unsigned n;
    struct session_idlest_entry list[SESSION_IDLEST_MAX]; /* sorted by at_ns, the latest first */
};

/*
 * session_idlest_init(si) / session_idlest_begin(si, set, at_ns) / session_idlest_end(si):
 * Initialise / begin to search ${set} for the SESSION_IDLEST_MAX sessions with the earliest at_ns()
 * / end the search, if it has begun. Sessions with at_ns() CLOCK_NEVER are left out.
 *
 * Thread: loop; session_idlest_init(): any, before other threads can use ${si}
 * Owns:   ${si} must outlive the search
 */
void session_idlest_init(struct session_idlest *si);
void session_idlest_begin(struct session_idlest *si, struct session_set *set,
                          int64_t (*at_ns)(const struct session *s));
void session_idlest_end(struct session_idlest *si);

/*
 * session_idlest_step(si):
 * Visit the sessions of the next step; true: all were visited.
 *
 * Thread: loop
 */
bool session_idlest_step(struct session_idlest *si) NODISCARD;

/*
 * session_idlest_take(si) / session_idlest_put_back(si):
 * Take the session that has been idle for longest and is not ending; NULL: none is left / put back
 * the one just taken.
 *
 * Thread: loop
 * Owns:   the session is valid until the end of the turn
 */
struct session *session_idlest_take(struct session_idlest *si);
void session_idlest_put_back(struct session_idlest *si);

#endif
