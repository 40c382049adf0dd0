#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ref.h"
#include "engine/loop.h"
#include "engine/promise.h"
#include "handover/server_state.h"
#include "listen/listeners.h"
#include "names/resolver.h"
#include "server/server_parts.h"
#include "server/upstreams.h"
#include "upstream/upstream.h"

/* How long to wait for a control loop that is busy. */
#define SERVER_STATE_SETTLE_NS (1 * NS_PER_S)

/* Comes after all reports on the way to the control loop. */
struct server_state_settle {
    struct task task;
    struct ref references; /* the waiting thread, the task */
    struct promise applied;
};

static void server_state_settle_release(struct server_state_settle *s)
{
    if (!ref_release(&s->references))
        return;
    promise_close(&s->applied);
    free(s);
}

static void server_state_settle_run(struct task *t)
{
    struct server_state_settle *s = CONTAINER_OF(t, struct server_state_settle, task);

    promise_succeed(&s->applied);
    server_state_settle_release(s);
}

static const struct task_type server_state_settle_type = {.name = "counters of others are applied",
                                                          .run = server_state_settle_run,
                                                          .drop = server_state_settle_run};

/*
 * Wait until the reports of other processes are applied. Else our counters could lack what their
 * texts have (server_state_text()): if we were killed before the next report, our successor would
 * count these sessions as open for ever.
 */
static void server_state_settle(struct loop *control)
{
    struct server_state_settle *s;

    if (loop_state(control) == LOOP_NOT_STARTED)
        return; /* they are applied at once */
    s = calloc(1, sizeof(*s));
    if (!s)
        return;
    s->task.type = &server_state_settle_type;
    ref_init(&s->references);
    promise_init(&s->applied, NULL);
    ref_hold(&s->references);
    if (loop_submit(control, LOOP_CONTROL, &s->task) < 0)
        server_state_settle_release(s); /* the loop has ended: nothing is on the way */
    else if (promise_await(&s->applied, SERVER_STATE_SETTLE_NS) < 0)
        log_debug("upgrade: the control loop is busy: a report may lack counters");
    server_state_settle_release(s);
}

/* Without removed upstreams: another one may have the name. */
void server_state_write(const struct server *sv, FILE *f)
{
    const struct server_parts parts = server_parts(sv);
    struct upstream **list;
    unsigned n;

    server_state_settle(parts.control);
    listeners_write_state(parts.listeners, f);
    list = upstreams_hold_all(parts.upstreams, false, &n);
    for (unsigned i = 0; i < n; i++) {
        upstream_state_write(list[i], f);
        upstream_release(list[i]);
    }
    free(list);
}

void server_state_write_names(struct server *sv, FILE *f)
{
    resolver_write(server_parts(sv).resolver, f);
}

void server_state_use_names(struct server *sv, const char *text)
{
    if (resolver_read(server_parts(sv).resolver, text) < 0)
        log_warning("upgrade: the addresses of some names are lost: out of memory");
}
