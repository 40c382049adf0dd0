/* server/server_edits: servers that an administrator adds and removes: see server_edit(). */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "server/server_internal.h"
#include "server/upstreams.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"

/* Interval of looks whether earlier changes have ended. */
#define SERVER_EDITS_SETTLE_NS NS_PER_MS

/* Time for them to end. A worker loop that hangs may never let them. */
#define SERVER_EDITS_WAIT_NS (2 * NS_PER_S)

static void server_edits_look(struct task *t)
{
    struct server_change *change = TIMER_OWNER(t, struct server_change, settle);
    struct server *sv = server_of_change(change);

    if (upstreams_is_settled(change->upstreams) || atomic_load(&change->given_up))
        server_change_checks_ready(change);
    else if (clock_now_ns() < change->settle_by_ns)
        loop_schedule(threads_control(&sv->threads), &change->settle, SERVER_EDITS_SETTLE_NS);
    else
        server_change_names_ready(change, -EAGAIN);
}

/* No drop(): if the loop ends, the change does not go on. */
static const struct task_type server_edits_type = {.name = "wait for earlier changes",
                                                   .run = server_edits_look};

int server_edits_prepare(struct server_change *change)
{
    timer_init(&change->settle, &server_edits_type);
    if (change->phase != SERVER_EDITS || upstreams_is_settled(change->upstreams))
        return 0;
    change->settle_by_ns = clock_now_ns() + SERVER_EDITS_WAIT_NS;
    loop_schedule(threads_control(&server_of_change(change)->threads), &change->settle,
                  SERVER_EDITS_SETTLE_NS);
    return -EINPROGRESS;
}

void server_edits_cancel(struct server_change *change)
{
    if (change->settle.state != TIMER_IDLE)
        loop_cancel(threads_control(&server_of_change(change)->threads), &change->settle);
}

static unsigned server_edits_sessions(const struct membership *r, const char *id)
{
    unsigned n = 0;

    list_for_each (node, &r->servers) {
        struct upstream_server *server = LIST_ENTRY(node, struct upstream_server, link);

        if (!server->is_listed && strcmp(server->line->conf.id, id) == 0)
            n += endpoint_active(&server->endpoint);
    }
    return n;
}

static void server_edits_log(const struct server_edit *edit)
{
    bool is_last = !edit->is_added && edit->n_up == 0;

    log_event(LOG_SERVER, is_last ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE,
              "upstream %s: server %s: %s, by an administrator%s; servers up: %u of %u",
              edit->upstream, edit->server, edit->is_added ? "added" : "removed",
              is_last ? ": no server is left that gets clients" : "", edit->n_up, edit->n_used);
}

void server_edits_commit(struct server_change *change)
{
    struct server *sv = server_of_change(change);

    if (change->phase != SERVER_EDITS)
        return;
    sv->conf = change->reload.conf;
    for (unsigned i = 0; i < change->reload.n_edits; i++) {
        struct server_edit *edit = &change->reload.edits[i];
        const struct upstream *up =
            upstreams_configured(sv->upstreams, edit->upstream, strlen(edit->upstream));

        if (!up)
            continue;
        edit->n_up = membership_count_up(&up->membership, &edit->n_used);
        edit->n_sessions =
            edit->is_added ? 0 : server_edits_sessions(&up->membership, edit->server);
        server_edits_log(edit);
    }
}
