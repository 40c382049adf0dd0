/*
 * limits/throttle: how fast bytes may come from clients and go to them, for each connection and for
 * all of a listener.
 *
 * Bytes are counted where they are read (channel_meter()), so that splicing is throttled like
 * copying: what may not be read waits in the sender's socket, and TCP slows the sender down. A
 * reader reserves a grant, some bytes at a time, of every bucket that it is subject to, and reads
 * until it is used up; if the grant is not there yet it sleeps until it is, by the one timer it
 * has. What is left of it when no more bytes are there is given back.
 *
 * note: turns. Connections of all workers share a listener's bucket without a lock: reserving moves
 * its one number (limits/token_bucket), and the wait that comes of it is a place in a queue.
 * Whoever waits has its turn when all who came before have had theirs, whichever worker they are
 * on; and a grant is small, so that turns come often.
 */
#ifndef LIMITS_THROTTLE_H
#define LIMITS_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cache_line.h"
#include "base/must.h"
#include "limits/token_bucket.h"

struct channel;
struct throttle;

/* From the client; to the client. */
enum throttle_direction { THROTTLE_IN = 1 << 0, THROTTLE_OUT = 1 << 1 };

#define THROTTLE_DIRECTIONS 2

/* Bytes a second; 0: no limit. */
struct throttle_conf {
    unsigned each_in; /* of each connection */
    unsigned each_out;
    unsigned all_in; /* of all of a listener */
    unsigned all_out;
};

struct throttle_limit {
    struct token_bucket_conf each;
    struct token_bucket_conf all;
    size_t grant_bytes; /* reserved at a time; 0: there is no limit */
    char apart[CACHE_LINE_BYTES];
    struct token_bucket bucket; /* of all; see note: turns */
    char apart_too[CACHE_LINE_BYTES];
};

/* A listener's. */
struct throttle_plan {
    struct throttle_limit limits[THROTTLE_DIRECTIONS];
};

/*
 * throttle_plan_init(plan, conf):
 * Is anything limited?
 *
 * Thread: before start
 * Owns:   ${conf} is copied
 */
bool throttle_plan_init(struct throttle_plan *plan, const struct throttle_conf *conf);

/*
 * throttle_create(out, plan, ch, directions):
 * Keep what is read of ${ch} to the limits of ${plan} in ${directions}; ${out} is NULL if there are
 * none. The tail of ${ch} passes on what it is asked and told.
 *
 * Thread: loop of ${ch}
 * Owns:   the caller owns ${out}, until ${ch} is closed; ${plan} is borrowed
 * Errors: 0; -ENOMEM
 */
int throttle_create(struct throttle **out, struct throttle_plan *plan, struct channel *ch,
                    unsigned directions) NODISCARD;

/*
 * throttle_allow(t, max) / throttle_took(t, len, drained):
 * handler_ops.allow and handler_ops.took of the channel.
 *
 * Thread: loop of its channel
 * Units:  bytes
 */
size_t throttle_allow(struct throttle *t, size_t max);
void throttle_took(struct throttle *t, size_t len, bool drained);

/*
 * throttle_destroy(t):
 * The channel is closed; what was reserved is given back. NULL is allowed.
 *
 * Thread: loop of its channel
 */
void throttle_destroy(struct throttle *t);

#endif
