/*
 * server/overload: what is done when clients that do not read make the daemon hold too much, or
 * when there are so many that it takes too much memory.
 *
 * When the memory of bytes that wait for their receivers (net/memory_account) is above three
 * quarters of its limit an episode begins, so that what comes until it takes effect fits as well:
 * no client is accepted (limits/connection_limit), channels read little, and connections are
 * closed, at a pace, until half of the limit is free. Then it is over. The log has a line for its
 * beginning and one for its end.
 *
 * The memory in use (mallinfo2), with that of pipes, is looked at every OVERLOAD_LOOK_NS. Of
 * its limit counts what is above that of a daemon without clients; three quarters of this begin an
 * episode as well, and at five eighths it is over: who is closed for being idle has done nothing
 * wrong, so as few as will do. Between two looks buffers may not grow by more than there was room
 * for.
 *
 * Who is closed: of the connections that hold bytes the one on which nothing has moved for longest.
 * Water marks let each hold about as much as another, so there is no biggest worth the search, and
 * a client that reads, however slowly, is not idle: it is the last to go. If there is too much
 * memory and all bytes that are held would not make up for it, the idlest of all connections are
 * closed. What a connection can do without (a mirror) is given up before it is closed itself. Each
 * worker looks through its own sessions; the pace is one token bucket of all.
 */
#ifndef SERVER_OVERLOAD_H
#define SERVER_OVERLOAD_H

#include <stdint.h>

#include "base/must.h"
#include "limits/token_bucket.h"

struct memory_account;
struct overload;
struct connection_limit;
struct threads;

struct overload_conf {
    uint64_t max_buffered_bytes; /* 0: no limit */
    uint64_t max_memory_bytes;   /* likewise */
    struct token_bucket_conf
        shedding; /* connections that are closed; none: accepting none is all */
};

/*
 * How often the memory in use is looked at, unless that takes too long: see what it costs in
 * mallinfo2(3).
 */
#define OVERLOAD_LOOK_NS INT64_C(100000000)

/*
 * overload_create(out, conf, threads, room):
 * Ready for the first episode. NULL if there is no limit of either kind.
 *
 * Thread: main, before the workers are created
 * Owns:   the caller owns ${out}; ${conf} is copied, the others are borrowed until
 *         overload_destroy()
 * Errors: 0; -ENOMEM
 */
int overload_create(struct overload **out, const struct overload_conf *conf,
                    const struct threads *threads, struct connection_limit *room) NODISCARD;

/*
 * overload_start(ov):
 * No client has come yet: from now on memory is looked at, if it has a limit. NULL is allowed. What
 * fails is logged.
 *
 * Thread: main
 * Errors: 0; -ERANGE (half of the limit is taken already); as loop_submit_after()
 */
int overload_start(struct overload *ov) NODISCARD;

/*
 * overload_buffered(ov):
 * What workers count in; NULL if ${ov} is.
 *
 * Thread: any
 * Owns:   nothing; part of ${ov}
 */
struct memory_account *overload_buffered(struct overload *ov);

/*
 * overload_log_stats(ov):
 * Write what it counted to the log; NULL is allowed.
 *
 * Thread: any
 */
void overload_log_stats(const struct overload *ov);

/*
 * overload_destroy(ov):
 * Free it; NULL is allowed.
 *
 * Thread: main, after all loops have ended or were never started
 */
void overload_destroy(struct overload *ov);

#endif
