/*
 * spare/stale_retry: replaces a spare connection that the server closed before its first use.
 *
 * The client notices nothing. The spare connection is checked once more before the client's first
 * bytes are sent. After that it is not replaced, because the server may have read them.
 *
 * A retry has a handler in each pipeline, before the tail, until DONE.
 *
 *   ARMED --bytes or end of file from the client, bytes from the server--> DONE
 *    \--the server has ended--> LOST, the client paused --replace()--> ... stale_retry_replay() -->
 *    DONE
 */
#ifndef SPARE_STALE_RETRY_H
#define SPARE_STALE_RETRY_H

#include <stdbool.h>

#include "base/must.h"

struct session_spares_conf;
struct stale_retry;

/*
 * stale_retry_create(out, conf) / stale_retry_destroy(t):
 * Allocate a retry / free ${t}.
 *
 * Thread: loop
 * Owns:   ${out} must live as long as both channels
 * Errors: 0; -ENOMEM
 */
int stale_retry_create(struct stale_retry **out, const struct session_spares_conf *conf) NODISCARD;
void stale_retry_destroy(struct stale_retry *t);

/*
 * stale_retry_begin(t):
 * Add the handlers of ${t} to both channels, before any byte passes.
 *
 * Thread: loop
 */
void stale_retry_begin(struct stale_retry *t);

/*
 * stale_retry_lost(t):
 * Was the spare connection lost, and not replaced yet?
 *
 * Thread: loop
 */
bool stale_retry_lost(const struct stale_retry *t);

/*
 * stale_retry_replay(t):
 * Pass on the client's bytes kept since the loss; the new connection is the second leg.
 *
 * Thread: loop
 */
void stale_retry_replay(struct stale_retry *t);

#endif
