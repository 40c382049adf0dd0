/*
 * net/acceptor: accepts clients from a listen socket, in bursts.
 *
 * Pauses without descriptors or memory (logged once), or when the owner asks.
 */
#ifndef NET_ACCEPTOR_H
#define NET_ACCEPTOR_H

#include <stdint.h>

#include "base/must.h"
#include "net/address.h"
#include "net/netloop.h"

struct acceptor;

/* Pause as if accept(2) had failed. */
#define ACCEPTOR_EXHAUSTED (-1)

struct acceptor_ops {
    /*
     * Accept a client? 0: yes; `accepted` or `nobody` follows. ACCEPTOR_EXHAUSTED: no resources.
     * Else pause for so many ns, or until acceptor_resume(). NULL: always 0.
     */
    int64_t (*admit)(void *cookie);
    /* No client after `admit` allowed one; optional. */
    void (*nobody)(void *cookie);
    /* Take over ${fd}, non-blocking. On the acceptor's loop. */
    void (*accepted)(void *cookie, int fd, const struct address *peer);
};

struct acceptor_conf {
    const char *name; /* for logs; copied */
    unsigned batch;   /* accepts per event */
};

/*
 * acceptor_create(out, conf, fd, ops, cookie):
 * Create an acceptor for the listening ${fd}.
 *
 * Thread: any
 * Owns:   on 0 ${fd}; borrows ${ops} and ${cookie}
 * Errors: 0; -ENOMEM
 */
int acceptor_create(struct acceptor **out, const struct acceptor_conf *conf, int fd,
                    const struct acceptor_ops *ops, void *cookie) NODISCARD;

/*
 * acceptor_start(ac, loop) / acceptor_resume(ac):
 * Begin to accept on ${loop}; end a pause of acceptor_ops.admit.
 *
 * Thread: loop of ${ac}
 */
void acceptor_start(struct acceptor *ac, struct loop *loop);

void acceptor_resume(struct acceptor *ac);

/*
 * acceptor_drain(ac):
 * Accept the kernel's backlog, which acceptor_stop() would reset.
 *
 * Thread: loop of ${ac}
 */
void acceptor_drain(struct acceptor *ac);

/*
 * acceptor_stop(ac):
 * Close the listen socket; idempotent.
 *
 * Thread: loop of ${ac}; any if not started or the loop has ended
 */
void acceptor_stop(struct acceptor *ac);

/*
 * acceptor_destroy(ac):
 * Free a stopped acceptor or NULL.
 *
 * Thread: loop of ${ac}; any once it has ended
 */
void acceptor_destroy(struct acceptor *ac);

#endif
