/*
 * net/acceptor: accepts clients from a listen socket on a loop.
 *
 * Accepts in bursts. Pauses when descriptors or memory run out, instead of spinning on a readable
 * socket, and logs the episode once. Pauses without a log line when the owner asks for it.
 */
#ifndef NET_ACCEPTOR_H
#define NET_ACCEPTOR_H

#include <stdint.h>

#include "base/must.h"
#include "net/address.h"
#include "net/netloop.h"

struct acceptor;

/* Returned by acceptor_ops.admit: out of resources; pause as if accept(2) had failed. */
#define ACCEPTOR_LACK (-1)

struct acceptor_ops {
    /*
     * May a client be accepted? 0: yes, `accepted` or `nobody` follows. ACCEPTOR_LACK. Otherwise
     * no, for so many ns or until acceptor_resume(). NULL: always.
     */
    int64_t (*admit)(void *cookie);
    /* No client after `admit` returned 0. May be NULL. */
    void (*nobody)(void *cookie);
    /* Take over ${fd}, a new non-blocking client. On the acceptor's loop. */
    void (*accepted)(void *cookie, int fd, const struct address *peer);
};

struct acceptor_conf {
    const char *name; /* for logs ("listen echo: 127.0.0.1:7"); copied */
    unsigned batch;   /* accepts per readiness event */
};

/*
 * acceptor_create(out, conf, fd, ops, cookie):
 * Create an acceptor for the listening ${fd}.
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
 * End a pause of acceptor_ops.admit, if there is one.
 *
 * Thread: loop of ${ac}
 */
void acceptor_resume(struct acceptor *ac);

/*
 * acceptor_drain(ac):
 * Accept the clients in the kernel's backlog, which acceptor_stop() would reset.
 *
 * Thread: loop of ${ac}
 */
void acceptor_drain(struct acceptor *ac);

/*
 * acceptor_stop(ac):
 * Close the listen socket; idempotent.
 *
 * Thread: loop of ${ac}; any if never started or the loop has ended
 */
void acceptor_stop(struct acceptor *ac);

/*
 * acceptor_destroy(ac):
 * Free a stopped acceptor; NULL is allowed.
 *
 * Thread: loop of ${ac}; any once it has ended
 */
void acceptor_destroy(struct acceptor *ac);

#endif
