/*
 * server/overload: what is done when clients that do not read make the daemon hold too much.
 *
 * When the memory of bytes that wait for their receivers (net/buffered) is above three quarters of its limit an episode
 * begins, so that what comes until it takes effect fits as well: no client is accepted (server/room), channels read little,
 * and connections are closed, at a pace, until half of the limit is free. Then it is over. The log has a line for its
 * beginning and one for its end.
 *
 * Who is closed: of the connections that hold memory the one on which nothing has moved for longest. Water marks let each
 * hold about as much as another, so there is no biggest worth the search, and a client that reads, however slowly, is not
 * idle: it is the last to go. Each worker looks through its own sessions; the pace is one token bucket of all.
 */
#ifndef SERVER_OVERLOAD_H
#define SERVER_OVERLOAD_H

#include <stdint.h>

#include "base/must.h"
#include "traffic/token_bucket.h"

struct buffered;
struct overload;
struct room;
struct threads;

struct overload_conf {
    uint64_t max_buffered_bytes; /* 0: no limit */
    struct token_bucket_conf
        shedding; /* connections that are closed; none: accepting none is all */
};

/*
 * overload_create(out, conf, threads, room):
 * Ready for the first episode. NULL if there is no limit.
 *
 * Thread: main, before the workers are created
 * Owns:   the caller owns ${out}; ${conf} is copied, the others are borrowed until overload_destroy()
 * Errors: 0; -ENOMEM
 */
int overload_create(struct overload **out, const struct overload_conf *conf,
                    const struct threads *threads, struct room *room) MUST_CHECK;

/*
 * overload_buffered(ov):
 * What workers count in; NULL if ${ov} is.
 *
 * Thread: any
 * Owns:   nothing; part of ${ov}
 * Errors: none
 */
struct buffered *overload_buffered(struct overload *ov);

/*
 * overload_log_stats(ov):
 * Write what it counted to the log; NULL is allowed.
 *
 * Thread: any
 * Errors: none
 */
void overload_log_stats(const struct overload *ov);

/*
 * overload_destroy(ov):
 * Free it; NULL is allowed.
 *
 * Thread: main, after all loops have ended or were never started
 * Errors: none
 */
void overload_destroy(struct overload *ov);

#endif
