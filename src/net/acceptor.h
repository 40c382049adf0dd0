/*
 * net/acceptor: accepts clients from a listen socket, in bursts.
 *
 * It pauses when descriptors or memory run out, and when admit() asks for a pause.
 */
#ifndef NET_ACCEPTOR_H
#define NET_ACCEPTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "net/address.h"
#include "net/netloop.h"

struct acceptor;

/* Result of admit(): out of descriptors; the acceptor pauses as after EMFILE from accept(2). */
#define ACCEPTOR_EXHAUSTED (-1)

struct acceptor_ops {
    /*
     * May a client be accepted? 0: yes, and accepted() or nobody() follows; > 0: pause for this
     * many ns, or until acceptor_resume(); or ACCEPTOR_EXHAUSTED. NULL: always 0.
     */
    int64_t (*admit)(void *cookie);
    /* Called when accept(2) fails after admit() returned 0; may be NULL. */
    void (*nobody)(void *cookie);
    /* On the acceptor's loop: the callee owns the non-blocking ${fd}. */
    void (*accepted)(void *cookie, int fd, const struct address *peer);
    /* Write the acceptor's name for log lines. */
    void (*name)(void *cookie, char *text, size_t size);
};

#define ACCEPTOR_NAME_BYTES (ADDRESS_TEXT_BYTES + 72)

/*
 * acceptor_create(out, batch, fd, ops, cookie) / acceptor_set_batch(ac, batch):
 * Create an acceptor for the listening ${fd} / change ${batch}, the limit of accepts per event.
 *
 * Owns:   on 0 the acceptor owns ${fd}; ${ops} and ${cookie} must outlive it
 * Errors: 0; -ENOMEM
 */
int acceptor_create(struct acceptor **out, unsigned batch, int fd, const struct acceptor_ops *ops,
                    void *cookie) NODISCARD;
void acceptor_set_batch(struct acceptor *ac, unsigned batch);

/*
 * acceptor_start(ac, loop) / acceptor_resume(ac):
 * Begin to accept on ${loop} / end a pause that admit() asked for; without a loop that is left to
 * acceptor_start().
 *
 * Thread: loop
 */
void acceptor_start(struct acceptor *ac, struct loop *loop);

void acceptor_resume(struct acceptor *ac);

/*
 * acceptor_leave(ac):
 * Stop accepting, so that another loop can call acceptor_start(). Clients wait meanwhile.
 *
 * Thread: loop
 */
void acceptor_leave(struct acceptor *ac);

/*
 * acceptor_drain(ac):
 * Accept the kernel's backlog, which acceptor_stop() would reset.
 *
 * Thread: loop
 */
void acceptor_drain(struct acceptor *ac);

/*
 * acceptor_stop(ac):
 * Close the listen socket; idempotent.
 *
 * Thread: loop of ${ac}, or any if not started or the loop has ended
 */
void acceptor_stop(struct acceptor *ac);

/*
 * acceptor_destroy(ac):
 * Free a stopped acceptor or NULL.
 *
 * Thread: loop of ${ac}, or any if the loop has ended
 */
void acceptor_destroy(struct acceptor *ac);

#endif
