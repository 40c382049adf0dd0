/*
 * service/proxy_failure: what follows when a server cannot be reached: another server, the queue, a
 * pause, or the end of the session. See proxy_internal.h.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/sock.h"
#include "service/proxy_internal.h"
#include "upstream/upstream.h"

static void proxy_log_failure(const struct proxy *p, const char *why, const char *then)
{
    struct upstream_server *server = p->at;
    unsigned suppressed;

    if (!log_allowed(&server->log_limit, PROXY_LOG_INTERVAL_NS, &suppressed))
        return;
    log_event_again(LOG_SERVER, LOG_LEVEL_WARNING,
                    "upstream %s: server %s (%s): cannot connect: %s; %s%s",
                    proxy_upstream(p)->name, server->name, server->conf->address_text, why, then,
                    LOG_SUPPRESSED(suppressed));
}

/* The session keeps its deadline, or has none, if a reload changes retry_timeout. */
static bool proxy_may_retry(const struct proxy *p)
{
    return p->pick.n_tried <= proxy_upstream(p)->conf->retries &&
           proxy_time_left_ns(p, clock_now_ns()) > 0;
}

/* This process lacks descriptors or memory: another server would not help. */
static void proxy_exhausted(struct proxy *p, int error)
{
    proxy_log_failure(p, strerror(-error), "the client is reset");
    proxy_give_up_server(p, UPSTREAM_UNKNOWN, SESSION_ERROR);
    session_abort(&p->session, SESSION_ERROR);
}

/* What follows the failure of a server: the next one was picked with ${rc}. */
static const char *proxy_next_step(const struct proxy *p, int rc, bool pauses)
{
    const struct upstream *up = proxy_upstream(p);

    if (pauses)
        return "trying again after a pause";
    if (rc == -EBUSY && (up->conf->queue_length > 0 || hold_is_closed(&up->waiting.hold)))
        return "waiting for another server";
    return rc == 0 ? "trying another server" : "the client is reset";
}

void proxy_failed(struct proxy *p, const struct proxy_failure *failure)
{
    struct upstream_server *next = NULL;
    int rc = -ENOENT;
    bool pauses;

    counters_connect_failed(&p->at->connects);
    if (sock_error_is_exhaustion(failure->error)) {
        proxy_exhausted(p, failure->error);
        return;
    }
    p->has_failed = true;
    if (!failure->is_ours && proxy_measures_time(p))
        proxy_time_failed(p);
    if (proxy_may_retry(p))
        rc = upstream_pick(proxy_upstream(p), &p->pick, &next);
    pauses = rc == -ENOENT && proxy_pause(p);
    proxy_log_failure(p, failure->why, proxy_next_step(p, rc, pauses));
    proxy_give_up_server(p, failure->is_ours ? UPSTREAM_UNKNOWN : UPSTREAM_FAILED, failure->reason);
    if (rc == 0)
        proxy_connect_to(p, next);
    else if (rc == -EBUSY)
        proxy_connect(p); /* wait in the queue */
    else if (!pauses)
        session_abort(&p->session, p->reason);
}
