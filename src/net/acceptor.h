/*
 * net/acceptor: a listen socket on a loop.
 *
 * Accepts in bursts. When descriptors or memory run out it stops listening for a moment instead of
 * spinning on a readable socket, and says so once for the whole episode. It also does when its
 * owner wants no more clients for a while, and leaves that to the owner to tell.
 */
#ifndef NET_ACCEPTOR_H
#define NET_ACCEPTOR_H

#include <stdint.h>

#include "base/must.h"
#include "net/address.h"
#include "net/netloop.h"

struct acceptor;

/*
 * What acceptor_ops.admit says when something has run out: the acceptor pauses as when accept
 * itself finds that.
 */
#define ACCEPTOR_LACK (-1)

struct acceptor_ops {
    /*
     * May another client be accepted? 0: yes, and `accepted` or `nobody` follows. ACCEPTOR_LACK.
     * Else no, and it is not asked again for so many ns, or until acceptor_resume(). NULL: always.
     */
    int64_t (*admit)(void *cookie);
    /* There was none after `admit` said yes. NULL if it does not matter. */
    void (*nobody)(void *cookie);
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
                    const struct acceptor_ops *ops, void *cookie) NODISCARD;

/*
 * acceptor_start(ac, loop):
 * Begin to accept on ${loop}.
 *
 * Thread: loop
 */
void acceptor_start(struct acceptor *ac, struct loop *loop);

/*
 * acceptor_resume(ac):
 * End a pause that acceptor_ops.admit began; nothing happens if there is none.
 *
 * Thread: loop of ${ac}
 */
void acceptor_resume(struct acceptor *ac);

/*
 * acceptor_drain(ac):
 * Accept the clients that the kernel has queued, which acceptor_stop() would reset.
 *
 * Thread: loop of ${ac}
 */
void acceptor_drain(struct acceptor *ac);

/*
 * acceptor_stop(ac):
 * Accept no more and close the listen socket. Nothing happens if that was done.
 *
 * Thread: loop of ${ac}; any if it was never started or its loop has ended
 */
void acceptor_stop(struct acceptor *ac);

/*
 * acceptor_destroy(ac):
 * Free a stopped acceptor; NULL is allowed.
 *
 * Thread: loop of ${ac}, or any once that has ended
 */
void acceptor_destroy(struct acceptor *ac);

#endif
