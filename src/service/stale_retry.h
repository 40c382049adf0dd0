/*
 * service/stale_retry: the first moments of a session on a spare connection: whether the server
 * still wants it.
 *
 * A server ends connections on which nothing comes, and may do so in the very moment in which a
 * spare one is given to a session. Until something has moved on it that is told apart from an end
 * that is meant for the client: another connection takes its place, and the client notices nothing.
 * The server is looked at once more right before the client's first bytes go there. Once these are
 * sent the trial is over: they cannot be sent again, for nobody can tell whether the server has
 * read them.
 *
 * It is a handler in both pipelines, right before their tails, and takes itself out when it is
 * over.
 *
 *   ON --bytes or end of file from the client, bytes from the server--> OVER
 *    \--the server has ended--> LOST, the client paused --replace()--> ... stale_retry_replay() -->
 *    OVER
 */
#ifndef SERVICE_STALE_RETRY_H
#define SERVICE_STALE_RETRY_H

#include "base/must.h"
#include "net/channel.h"
#include "service/session.h"

struct stale_retry;

struct stale_retry_conf {
    struct session *session;
    struct channel *client;
    struct channel *server; /* the session's second leg, the spare */
    /* The spare is closed and gone: connect again. On the loop. */
    void (*replace)(struct session *s);
};

/*
 * stale_retry_create(out, conf) / stale_retry_destroy(t):
 * Memory for a trial; free it, NULL is allowed.
 *
 * Thread: loop of the session
 * Owns:   the caller owns ${out}, as long as the channels live
 * Errors: 0; -ENOMEM
 */
int stale_retry_create(struct stale_retry **out, const struct stale_retry_conf *conf) NODISCARD;
void stale_retry_destroy(struct stale_retry *t);

/*
 * stale_retry_begin(t):
 * Stand before the tails of both channels, which have been set up and not started.
 *
 * Thread: loop of the session
 */
void stale_retry_begin(struct stale_retry *t);

/*
 * stale_retry_lost(t):
 * Did the spare fail, and nothing has taken its place so far? NULL is none.
 *
 * Thread: loop of the session
 */
bool stale_retry_lost(const struct stale_retry *t);

/*
 * stale_retry_replay(t):
 * Another connection is the second leg: pass on what came from the client meanwhile, and go on
 * without a trial.
 *
 * Thread: loop of the session
 */
void stale_retry_replay(struct stale_retry *t);

#endif
