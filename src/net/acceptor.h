/*
 * net/acceptor: a listen socket on a loop.
 *
 * Accepts in bursts. When descriptors or memory run out it stops listening for a moment instead of spinning on
 * a readable socket, and says so once for the whole episode.
 */
#ifndef NET_ACCEPTOR_H
#define NET_ACCEPTOR_H

#include <stdbool.h>

#include "base/must.h"
#include "net/address.h"
#include "net/netloop.h"

struct acceptor;

struct acceptor_ops {
    /* May another client be accepted? If not the acceptor pauses as if descriptors had run out. NULL: always. */
    bool (*admit)(void *cookie);
    /* ${fd} is a new client's, non-blocking, and the callee owns it. On the acceptor's loop. */
    void (*accepted)(void *cookie, int fd, const struct address *peer);
};

struct acceptor_conf {
    const char *name; /* for logs, such as "listen echo: 127.0.0.1:7"; copied */
    unsigned batch;   /* accepts at most in one readiness */
};

/*
 * acceptor_create(out, conf, fd, ops, cookie):
 * An acceptor for the listening ${fd}, on no loop yet.
 *
 * Thread: any
 * Owns:   on 0 the acceptor owns ${fd}; ${ops} and ${cookie} are borrowed
 * Errors: 0; -ENOMEM
 */
int acceptor_create(struct acceptor **out, const struct acceptor_conf *conf, int fd,
                    const struct acceptor_ops *ops, void *cookie) MUST_CHECK;

/*
 * acceptor_start(ac, loop):
 * Begin to accept on ${loop}.
 *
 * Thread: loop
 * Errors: none
 */
void acceptor_start(struct acceptor *ac, struct loop *loop);

/*
 * acceptor_drain(ac):
 * Accept the clients that the kernel has queued, which acceptor_stop() would reset.
 *
 * Thread: loop of ${ac}
 * Errors: none
 */
void acceptor_drain(struct acceptor *ac);

/*
 * acceptor_stop(ac):
 * Accept no more and close the listen socket. Nothing happens if that was done.
 *
 * Thread: loop of ${ac}; any if it was never started or its loop has ended
 * Errors: none
 */
void acceptor_stop(struct acceptor *ac);

/*
 * acceptor_destroy(ac):
 * Free a stopped acceptor; NULL is allowed.
 *
 * Thread: loop of ${ac}, or any once that has ended
 * Errors: none
 */
void acceptor_destroy(struct acceptor *ac);

#endif
