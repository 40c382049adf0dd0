/*
 * support/host: who runs sessions in a test, in the place of a worker: a loop with an owner on it.
 */
#ifndef SUPPORT_HOST_H
#define SUPPORT_HOST_H

#include <stdatomic.h>

#include "handlers/pipeline_conf.h"
#include "service/session.h"

struct executor;

/* How long clients and servers of host_open() may acknowledge nothing at the end. */
#define HOST_LINGER_NS (3 * NS_PER_S)

struct host {
    struct session_owner owner;
    struct loop *loop;
    struct service service;
    struct session_conf conf;      /* settings may be changed before the first client */
    struct pipeline_conf pipeline; /* its settings may be changed before host_pipeline() */
    struct pipeline_template *plan;
    struct list sessions;
    atomic_uint adopted;
    atomic_uint ended;
    atomic_int reason; /* enum session_reason of the one that ended last */
};

/*
 * host_open(h, ops, upstream):
 * A host for sessions of a service with ${ops}: no timeouts but HOST_LINGER_NS, splice as large
 * reads suggest.
 *
 * Thread: the test's
 * Owns:   ${upstream} is borrowed
 * Errors: none (the test fails)
 */
void host_open(struct host *h, const struct service_ops *ops, struct upstream *upstream);

/*
 * host_pipeline(h, name, executor):
 * The service's clients have the handler called ${name} too, behind those added before. Before the
 * first client.
 *
 * Thread: the test's
 * Owns:   ${executor} is borrowed, and may be NULL
 * Errors: none (the test fails)
 */
void host_pipeline(struct host *h, const char *name, struct executor *executor);

/*
 * host_close(h):
 * Abort what is left, end the loop and see that every session has ended once.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void host_close(struct host *h);

/*
 * host_client(h) / host_adopt(h, fd):
 * A session with a new TCP client, whose descriptor is the result; a session with the client at the
 * other end of ${fd}.
 *
 * Thread: the test's
 * Owns:   the caller owns the client's descriptor; the session has ${fd}
 * Errors: none (the test fails)
 */
int host_client(struct host *h);
void host_adopt(struct host *h, int fd);

/*
 * host_drain(h) / host_abort(h, reason):
 * session_drain() and session_abort() for each session.
 *
 * Thread: the test's
 */
void host_drain(struct host *h);
void host_abort(struct host *h, enum session_reason reason);

/*
 * host_carry_over(h, service):
 * session_carry_over() for each session.
 *
 * Thread: the test's
 */
void host_carry_over(struct host *h, const struct service *service);

/*
 * host_leave_in(h, ns):
 * session_leave_by() for each session, so long from now.
 *
 * Thread: the test's
 */
void host_leave_in(struct host *h, int64_t ns);

/*
 * host_pending(h):
 * The bytes that wait in all channels of all sessions.
 *
 * Thread: the test's
 */
size_t host_pending(struct host *h);

/*
 * host_expect_end(h, reason):
 * Wait until every session has ended, the last one for ${reason}.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void host_expect_end(struct host *h, enum session_reason reason);

#endif
