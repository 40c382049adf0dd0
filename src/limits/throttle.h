/*
 * limits/throttle: bandwidth limits of connections and listeners.
 *
 * Bytes are charged when they are read or spliced (channel_meter()): unread bytes wait in the
 * socket, and TCP slows the sender. A channel reserves a grant of bytes from all its buckets,
 * sleeps until the grant is due, and reads until the grant is used up. When the socket is empty,
 * the channel gives back the rest.
 *
 * note: turns. Connections of all workers share a listener's bucket without a lock
 * (limits/token_bucket): reservations are served in order. Grants are small, so that turns come
 * often.
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

/* IN: from the client; OUT: to the client. */
enum throttle_direction { THROTTLE_IN = 1 << 0, THROTTLE_OUT = 1 << 1 };

#define THROTTLE_DIRECTIONS 2

/* Bytes a second; 0: no limit. */
struct throttle_conf {
    unsigned each_in; /* per connection */
    unsigned each_out;
    unsigned all_in; /* per listener */
    unsigned all_out;
};

struct throttle_limit {
    struct token_bucket_conf each;
    struct token_bucket_conf all;
    size_t grant_bytes; /* size of a reservation; 0: no limit */
};

/* A listener's buckets; zeroed: full. See note: turns. */
struct throttle_shared {
    struct {
        char apart[CACHE_LINE_BYTES];
        struct token_bucket bucket; /* for throttle_limit.all */
    } of[THROTTLE_DIRECTIONS];
    char apart[CACHE_LINE_BYTES];
};

/* The limits of a listener generation; immutable. */
struct throttle_plan {
    struct throttle_limit limits[THROTTLE_DIRECTIONS];
    struct throttle_shared *shared;
};

/*
 * throttle_plan_init(plan, conf, shared):
 * Initialize ${plan} with the limits of ${conf}; false if it sets none.
 *
 * Owns:   ${shared} must outlive ${plan}
 */
bool throttle_plan_init(struct throttle_plan *plan, const struct throttle_conf *conf,
                        struct throttle_shared *shared);

/*
 * throttle_plan_begin(plan, before, now_ns):
 * Convert the shared buckets from the rates of ${before} to those of ${plan}.
 *
 * Thread: any, one at a time
 */
void throttle_plan_begin(const struct throttle_plan *plan, const struct throttle_plan *before,
                         int64_t now_ns);

/*
 * throttle_create(out, plan, ch, directions):
 * Limit reads of ${ch} by the limits of ${plan} for ${directions}; ${out} is NULL without limits.
 * The tail handler of ${ch} must forward allow() and took() to ${out}.
 *
 * Thread: loop of ${ch}
 * Owns:   the caller frees ${out} when ${ch} is closed; ${plan} must live until throttle_set() or
 *         throttle_destroy()
 * Errors: 0; -ENOMEM
 */
int throttle_create(struct throttle **out, const struct throttle_plan *plan, struct channel *ch,
                    unsigned directions) NODISCARD;

/* throttle_set(t, plan): limit by ${plan} from now on; NULL: unlimited. Thread: loop */
void throttle_set(struct throttle *t, const struct throttle_plan *plan);

/*
 * throttle_allow(t, max) / throttle_took(t, len, drained):
 * Implement handler_ops.allow and handler_ops.took.
 *
 * Thread: loop
 */
size_t throttle_allow(struct throttle *t, size_t max);
void throttle_took(struct throttle *t, size_t len, bool drained);

/*
 * throttle_leave_loop(t) / throttle_join_loop(t):
 * Suspend / resume ${t} or NULL, whose channel moves to another loop.
 *
 * Thread: loop
 */
void throttle_leave_loop(struct throttle *t);
void throttle_join_loop(struct throttle *t);

/*
 * throttle_save(t, full_at_ns) / throttle_restore(t, full_at_ns):
 * Write the state of the connection's own buckets, THROTTLE_DIRECTIONS of them, for another process
 * / use it. ${t} may be NULL.
 *
 * Thread: loop
 */
void throttle_save(const struct throttle *t, int64_t *full_at_ns);
void throttle_restore(struct throttle *t, const int64_t *full_at_ns);

/*
 * throttle_destroy(t):
 * Give back reserved bytes; free ${t} or NULL.
 *
 * Thread: loop, when the channel is closed
 */
void throttle_destroy(struct throttle *t);

#endif
