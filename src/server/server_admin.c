#include "server/server_admin.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "engine/loop_group.h"
#include "listen/listeners.h"
#include "server/server_internal.h"
#include "server/upstreams.h"
#include "sessions/rebalance.h"
#include "sessions/workers.h"
#include "upstream/membership_admin.h"
#include "upstream/upstream.h"

/* ---- control loop ---- */

/* Find a server of a name by its own name, ID@ADDRESS. */
static const struct upstream_server *server_admin_find_one(const struct upstream *up,
                                                           const char *name)
{
    const struct server_set *set = membership_now(&up->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (strcmp(set->servers[i]->name, name) == 0)
            return set->servers[i];
    return NULL;
}

/* ${one}: NULL if ${change} applies to the whole ${line}. */
static int server_admin_find(const struct server_admin *change, struct upstream **up,
                             struct server_line **line, const struct upstream_server **one)
{
    *up = upstreams_configured(change->sv->upstreams, change->upstream, strlen(change->upstream));
    *line = *up ? membership_find_line(&(*up)->membership, change->server) : NULL;
    *one = *up && !*line ? server_admin_find_one(*up, change->server) : NULL;
    if (*one)
        *line = (*one)->line;
    return *line ? 0 : -ENOENT;
}

static const char *server_admin_word(const struct server_admin *change)
{
    if (change->kind == SERVER_ADMIN_WEIGHT)
        return "another weight";
    switch (change->state_now) {
    case SERVER_LINE_DRAIN: return "draining";
    case SERVER_LINE_DISABLED: return "disabled";
    case SERVER_LINE_READY:
    case SERVER_LINE_AS_CONFIGURED: break;
    }
    return "enabled";
}

/* Log ${change} as health checks do; a warning if because of it no server of ${up} gets clients. */
static void server_admin_log(struct server_admin *change, const struct upstream *up)
{
    unsigned n_used, n_up = membership_count_up(&up->membership, &n_used);

    change->is_last =
        n_up == 0 && (change->weight_now == 0 || change->state_now == SERVER_LINE_DRAIN ||
                      change->state_now == SERVER_LINE_DISABLED);
    log_event(LOG_SERVER, change->is_last ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE,
              "upstream %s: server %s: %s, by an administrator%s; servers up: %u of %u", up->name,
              change->server, server_admin_word(change),
              change->is_last ? ": no server is left that gets clients" : "", n_up, n_used);
}

static void server_admin_tell(struct server_admin *change, const struct upstream *up,
                              const struct server_line *line, const struct upstream_server *one)
{
    const struct server_line_admin admin =
        one ? server_line_own_admin(line, one->name) : line->admin;
    bool is_by_records = line->conf.names == UPSTREAM_SERVICE;

    change->state_now = admin.state;
    if (admin.state == SERVER_LINE_AS_CONFIGURED && line->conf.disabled)
        change->state_now = SERVER_LINE_DISABLED;
    if (one)
        change->weight_now = (int)atomic_load(&one->endpoint.weight);
    else
        change->weight_now = is_by_records ? -1 : (int)server_line_weight(line, line->conf.weight);
    server_admin_log(change, up);
}

/* Change ${admin}. ${ready}: state when enabled; ${weight}: weight without a setting. */
static void server_admin_edit(const struct server_admin *change, struct server_line_admin *admin,
                              enum server_line_state ready, int weight)
{
    if (change->kind == SERVER_ADMIN_STATE) {
        admin->state = change->state == SERVER_LINE_READY ? ready : change->state;
        return;
    }
    admin->weight = change->weight;
    admin->has_weight = (int)change->weight != weight;
}

static int server_admin_change_all(struct server_admin *change, struct upstream *up,
                                   struct server_line *line)
{
    struct server_line_admin admin = line->admin;

    server_admin_edit(change, &admin, server_line_ready(line, false),
                      server_line_plain_weight(line, false));
    return membership_admin_set(&up->membership, line, &admin,
                                change->kind == SERVER_ADMIN_STATE ? SERVER_LINE_OWN_STATES
                                                                   : SERVER_LINE_OWN_WEIGHTS);
}

static int server_admin_change_one(struct server_admin *change, struct upstream *up,
                                   struct server_line *line, const struct upstream_server *one)
{
    struct server_line_admin admin = server_line_own_get(line, one->name);

    server_admin_edit(change, &admin, server_line_ready(line, true),
                      server_line_plain_weight(line, true));
    return membership_admin_set_one(&up->membership, line, one->name, &admin);
}

/* Who enables a server knows better than its agent, until the agent says something again. */
static void server_admin_overrule_agents(struct upstream *up, const struct server_line *line,
                                         const struct upstream_server *one)
{
    const struct server_set *set = membership_now(&up->membership);
    const struct membership_watch *w = &up->membership.watch;

    for (unsigned i = 0; i < set->n; i++) {
        struct upstream_server *server = set->servers[i];

        if (server->line == line && (!one || server == one) &&
            endpoint_clear_flag(&server->endpoint, ENDPOINT_SAID_DOWN) && w->changed)
            w->changed(w->cookie, server);
    }
    upstream_serve(up);
}

static int server_admin_change_line(struct server_admin *change)
{
    struct upstream *up;
    struct server_line *line;
    const struct upstream_server *one;
    int rc = server_admin_find(change, &up, &line, &one);

    if (rc < 0)
        return rc;
    rc = one ? server_admin_change_one(change, up, line, one)
             : server_admin_change_all(change, up, line);
    if (rc == 0 && change->kind == SERVER_ADMIN_STATE && change->state == SERVER_LINE_READY)
        server_admin_overrule_agents(up, line, one);
    if (rc == 0)
        server_admin_tell(change, up, line, one);
    return rc;
}

int server_admin_set_io_ratio(struct server *sv, unsigned io_ratio)
{
    unsigned wanted = io_ratio > 0 ? io_ratio : sv->conf->worker.io_ratio;
    int rc = loop_group_set_io_ratio(sv->threads.workers, wanted);

    if (rc == 0)
        atomic_store(&sv->admin_io_ratio, io_ratio);
    return rc;
}

unsigned server_admin_io_ratio(const struct server *sv, unsigned *configured)
{
    *configured = sv->conf->worker.io_ratio;
    return atomic_load(&sv->admin_io_ratio);
}

static int server_admin_reset(struct server *sv)
{
    int rc = 0;

    MUST(server_admin_set_io_ratio(sv, 0) == 0);
    listeners_reset_max(sv->listeners);
    for (unsigned i = 0; i < sv->conf->n_upstreams; i++) {
        const char *name = sv->conf->upstreams[i].name;
        struct upstream *up = upstreams_configured(sv->upstreams, name, strlen(name));
        int one = up ? membership_admin_reset(&up->membership) : 0;

        rc = rc < 0 ? rc : one;
    }
    return rc;
}

static int server_admin_apply(struct server_admin *change)
{
    switch (change->kind) {
    case SERVER_ADMIN_STATE:
    case SERVER_ADMIN_WEIGHT: return server_admin_change_line(change);
    case SERVER_ADMIN_IO_RATIO: return server_admin_set_io_ratio(change->sv, change->io_ratio);
    case SERVER_ADMIN_MAX_CONNECTIONS:
        return listeners_set_max(change->sv->listeners, change->target.listener,
                                 change->max_connections);
    case SERVER_ADMIN_PAUSE: return server_pause_begin(change->sv, &change->target, &change->pause);
    case SERVER_ADMIN_RESUME: return server_pause_resume(change->sv, &change->target, change->rate);
    case SERVER_ADMIN_RESET: break;
    }
    return server_admin_reset(change->sv);
}

/* ---- the asking loop ---- */

static void server_admin_run_answer(struct task *t)
{
    struct server_admin *change = CONTAINER_OF(t, struct server_admin, task);

    change->answered(change, change->rc);
}

static const struct task_type server_admin_answer_type = {.name = "answer an administrator",
                                                          .run = server_admin_run_answer};

static void server_admin_answer(struct server_admin *change, int rc)
{
    change->rc = rc;
    change->task.type = &server_admin_answer_type;
    if (loop_submit(change->asker, LOOP_CONTROL, &change->task) < 0)
        return; /* the asking loop has ended */
}

static void server_admin_run(struct task *t)
{
    struct server_admin *change = CONTAINER_OF(t, struct server_admin, task);

    server_admin_answer(change, server_admin_apply(change));
}

static void server_admin_drop(struct task *t)
{
    server_admin_answer(CONTAINER_OF(t, struct server_admin, task), -ESHUTDOWN);
}

static const struct task_type server_admin_type = {
    .name = "change by an administrator", .run = server_admin_run, .drop = server_admin_drop};

int server_admin_begin(struct server *sv, struct server_admin *change)
{
    MUST(loop_current());
    change->sv = sv;
    change->asker = loop_current();
    change->task.type = &server_admin_type;
    return loop_submit(threads_control(&sv->threads), LOOP_CONTROL, &change->task);
}

/* ---- any thread ---- */

struct session_scan_workers server_admin_workers(const struct server *sv)
{
    return (struct session_scan_workers){.loops = sv->threads.workers,
                                         .list = workers_list(sv->workers)};
}

int server_admin_rebalance(const struct server *sv, struct rebalance_ask *ask)
{
    return rebalance_ask_begin(sv->rebalance, ask);
}

void server_admin_rebalance_figures(const struct server *sv, struct figure_visitor *v)
{
    rebalance_figures(sv->rebalance, v);
}

struct session_spread_figures server_admin_spread(const struct server *sv)
{
    return session_spread_figures(sv->spread);
}

bool server_admin_has_listener(const struct server *sv, const char *name)
{
    struct listener *ls = listeners_lookup(sv->listeners, name);

    if (ls)
        listener_release(ls);
    return ls != NULL;
}

struct server_admin_search {
    const char *upstream, *server;
    bool found;
};

static bool server_admin_is(const struct upstream_server *server, const char *name)
{
    size_t len = strlen(name);

    return strncmp(server->name, name, len) == 0 &&
           (server->name[len] == '\0' || server->name[len] == '@');
}

static void server_admin_look(struct upstream *up, void *cookie)
{
    struct server_admin_search *search = cookie;
    struct server_set *set;

    if (strcmp(up->name, search->upstream) != 0)
        return;
    search->found |= search->server[0] == '\0';
    set = membership_hold_set(&up->membership);
    for (unsigned i = 0; i < set->n; i++)
        search->found |= server_admin_is(set->servers[i], search->server);
    membership_release_set(set);
}

bool server_admin_has_server(const struct server *sv, const char *upstream, const char *server)
{
    struct server_admin_search search = {.upstream = upstream, .server = server};

    upstreams_each(sv->upstreams, server_admin_look, &search);
    return search.found;
}

int server_admin_find_worker(const struct server *sv, const char *name, struct loop **out)
{
    struct loop_group *workers = sv->threads.workers;

    for (unsigned i = 0; i < loop_group_size(workers); i++) {
        *out = loop_group_at(workers, i);
        if (strcmp(loop_name(*out), name) == 0)
            return i < loop_group_in_use(workers) ? 0 : -ESHUTDOWN;
    }
    return -ENOENT;
}

bool server_admin_has_worker(const struct server *sv, const char *name)
{
    struct loop *loop;

    return server_admin_find_worker(sv, name, &loop) != -ENOENT;
}
