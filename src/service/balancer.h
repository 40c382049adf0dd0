/*
 * service/balancer: which server of an upstream gets the next session, and which one after that failed.
 *
 * Weighted round robin is laid out once as a cycle in nginx's smooth order (a server of weight 2 beside one
 * of weight 1 gives a b a, not a a b); a pick is then one atomic increment: no lock, no system call.
 */
#ifndef SERVICE_BALANCER_H
#define SERVICE_BALANCER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct balancer {
    uint16_t *cycle; /* places in `order`, cycle_len of them */
    uint32_t cycle_len;
    uint16_t *order; /* every index once: those that are not backups, then the backups */
    uint16_t n_servers;
    uint16_t n_primary;
    _Atomic uint64_t next;
};

/* The servers one session has tried: a start and how far it went round from there. */
struct balancer_walk {
    uint16_t first;
    uint16_t tried;
};

/*
 * balancer_init(b, weights, backup, n):
 * Lay out the cycle over ${n} servers, of which those with ${backup}[i] are tried only after all others.
 * When all are backups they are treated as if none were.
 *
 * Thread: before start
 * Owns:   nothing of the arguments
 * Errors: 0; -EINVAL (no server, more than 65535, or a weight of 0 or over 256); -ENOMEM
 * Source: nginx, ngx_http_upstream_round_robin ("smooth weighted round-robin", commit 52327e0627f4)
 */
int balancer_init(struct balancer *b, const unsigned *weights, const bool *backup,
                  unsigned n) MUST_CHECK;

/*
 * balancer_close(b):
 * Free what balancer_init() took.
 *
 * Thread: after the last worker has ended
 * Errors: none
 */
void balancer_close(struct balancer *b);

/*
 * balancer_first(b, walk):
 * The index of the server for a new session; ${walk} then remembers it.
 *
 * Thread: any
 * Errors: none
 */
unsigned balancer_first(struct balancer *b, struct balancer_walk *walk);

/*
 * balancer_next(b, walk, out):
 * The next server that ${walk} has not tried: the others in order, then the backups.
 *
 * Thread: any
 * Errors: 0; -ENOENT (all were tried)
 */
int balancer_next(const struct balancer *b, struct balancer_walk *walk, unsigned *out) MUST_CHECK;

#endif
