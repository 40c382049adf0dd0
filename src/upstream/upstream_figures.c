#include "upstream/upstream_figures.h"

#include <stdio.h>

#include "base/clock.h"
#include "stats/figure.h"
#include "upstream/upstream_internal.h"

/* Longest text of upstream_figures_check(), with NUL. */
#define UPSTREAM_FIGURES_CHECK (ENDPOINT_WHY_BYTES + 64)

struct upstream_figures_view {
    unsigned waiting, servers;
    bool panic;
};

static const struct figure upstream_figures_rows[] = {
    FIGURE_LIVE(struct upstream, GAUGE, NUMBER, group.load, "connections",
                "Connections to the servers."),
    FIGURE_OF(struct upstream_figures_view, GAUGE, NUMBER, waiting, "Clients in the queue."),
    FIGURE_OF(struct upstream_figures_view, GAUGE, NUMBER, servers,
              "Servers, with those that are disabled or have weight 0."),
    FIGURE_OF(struct upstream_figures_view, GAUGE, NUMBER, panic,
              "1 while all servers are used, fit or not."),
    FIGURE_LIVE(struct upstream, COUNTER, NUMBER, in_use.changes, "in_use_changes",
                "Times that other servers came into use."),
    FIGURE_LIVE(struct upstream, COUNTER, NUMBER, late_checks, "late_checks",
                "Health checks that began late."),
    FIGURE_LIVE(struct upstream, COUNTER, NUMBER, retry_budget.retries, "retries",
                "Retries after a pause."),
    FIGURE_LIVE(struct upstream, COUNTER, NUMBER, retry_budget.refused, "retries_refused",
                "Retries that retry_budget put off."),
};

const struct figure_table upstream_figures_table = {
    FIGURE_LIVE_TABLE(sizeof(struct upstream_figures_view), upstream_figures_rows)};

struct upstream_figures_fit {
    unsigned servers_up;
};

static const struct figure upstream_figures_fit_rows[] = {
    FIGURE_OF(struct upstream_figures_fit, GAUGE, NUMBER, servers_up,
              "Servers that get sessions: up or warming."),
};

static const struct figure_table upstream_figures_fit_table = {
    .is_not_logged = true, FIGURE_TABLE(struct upstream_figures_fit, upstream_figures_fit_rows)};

static bool upstream_figures_is_up(const struct endpoint *e)
{
    return endpoint_is_used(e) && (endpoint_load(e) & ENDPOINT_UNFIT) == 0;
}

void upstream_figures(const struct upstream *up, const struct server_set *set,
                      struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_UPSTREAM, .name = up->name};
    const struct upstream_figures_view view = {.waiting = wait_queue_length(&up->waiting),
                                               .servers = set->n,
                                               .panic = balancer_panics(set->balancer)};
    struct upstream_figures_fit fit = {.servers_up = 0};

    for (unsigned i = 0; i < set->n; i++)
        fit.servers_up += upstream_figures_is_up(&set->servers[i]->endpoint);
    figure_show_live(v, &upstream_figures_table, &object, &view, up);
    figure_show(v, &upstream_figures_fit_table, &object, &fit);
    counters_figures(&up->counters, &object, v);
}

struct upstream_figures_server_view {
    const char *state;
    unsigned connections;
};

static const struct figure upstream_figures_server_rows[] = {
    FIGURE_OF(struct upstream_figures_server_view, STATE, NUMBER, state, "State of the server."),
    FIGURE_OF(struct upstream_figures_server_view, GAUGE, NUMBER, connections,
              "Connections of clients to the server."),
    FIGURE_LIVE(struct upstream_server, COUNTER, NUMBER, endpoint.downs, "downs",
                "Times the server went down, was ejected or lost its address."),
};

static const struct figure_table upstream_figures_server_table = {
    FIGURE_LIVE_TABLE(sizeof(struct upstream_figures_server_view), upstream_figures_server_rows)};

struct upstream_figures_line_view {
    const char *address;
    bool in_use;
    int64_t state_age_ns;
    const char *down_reason;
    const char *last_check;
    const char *agent;
};

static const struct figure upstream_figures_line_rows[] = {
    FIGURE_OF(struct upstream_figures_line_view, TEXT, NUMBER, address,
              "Address, as configured or found."),
    FIGURE_LIVE(struct upstream_server, GAUGE, NUMBER, endpoint.weight, "weight",
                "Weight for balancing."),
    FIGURE_LIVE(struct upstream_server, GAUGE, NUMBER, endpoint.max_connections, "max_connections",
                "Connections that are allowed; 0: no limit."),
    FIGURE_LIVE(struct upstream_server, GAUGE, NUMBER, is_backup, "backup",
                "1 for a backup, which is used only without other servers."),
    FIGURE_LIVE(struct upstream_server, GAUGE, NUMBER, is_by_hand, "by_hand",
                "1 for a server that an administrator added, or whose line was replaced."),
    FIGURE_LIVE(struct upstream_server, GAUGE, NUMBER, endpoint.level, "priority",
                "Priority; servers of the lowest are used first."),
    FIGURE_OF(struct upstream_figures_line_view, GAUGE, NUMBER, in_use,
              "1 for a server in use: new sessions are sent to it."),
    FIGURE_MS_OF(struct upstream_figures_line_view, GAUGE, state_age, 0,
                 "Time since the server became usable or unusable, or was disabled or enabled."),
    FIGURE_OF(struct upstream_figures_line_view, TEXT, NUMBER, down_reason,
              "Why the server gets no sessions."),
    FIGURE_OF(struct upstream_figures_line_view, TEXT, NUMBER, last_check,
              "What its last health check found, and when."),
    FIGURE_OF(struct upstream_figures_line_view, TEXT, NUMBER, agent,
              "What its agent answered last."),
};

static const struct figure_table upstream_figures_line_table = {
    .is_not_logged = true,
    FIGURE_LIVE_TABLE(sizeof(struct upstream_figures_line_view), upstream_figures_line_rows)};

struct upstream_figures_time {
    int64_t connect_recent_ns, first_byte_recent_ns;
};

static const struct figure upstream_figures_time_rows[] = {
    FIGURE_MS_OF(struct upstream_figures_time, GAUGE, connect_recent, 3,
                 "Moving average of the time to connect, with balance = least_time."),
    FIGURE_MS_OF(struct upstream_figures_time, GAUGE, first_byte_recent, 3,
                 "Moving average of the time to the first byte, with balance = least_time."),
};

static const struct figure_table upstream_figures_time_table = {
    FIGURE_TABLE(struct upstream_figures_time, upstream_figures_time_rows)};

/* Only of a server that was measured. */
static void upstream_figures_show_time(const struct response_time *t,
                                       const struct figure_object *object, struct figure_visitor *v)
{
    const struct upstream_figures_time view = {
        .connect_recent_ns = (int64_t)response_time_average_ns(&t->connect),
        .first_byte_recent_ns = (int64_t)response_time_average_ns(&t->first_byte)};

    if (response_time_is_measured(&t->connect) || response_time_is_measured(&t->first_byte))
        figure_show(v, &upstream_figures_time_table, object, &view);
}

static const char *upstream_figures_state(const struct upstream_server *server, uint32_t load)
{
    if (atomic_load(&server->is_disabled))
        return "disabled";
    if (load & ENDPOINT_ABSENT)
        return "absent";
    if (load & ENDPOINT_ANY_DOWN)
        return "down";
    if (load & ENDPOINT_EJECTED)
        return "ejected";
    if (atomic_load(&server->is_draining))
        return "draining";
    if (!endpoint_is_used(&server->endpoint))
        return "drained";
    return load & ENDPOINT_WARMING ? "warming" : "up";
}

/* Why no session is sent to ${server}; ${text} holds ENDPOINT_WHY_BYTES. */
static const char *upstream_figures_why(struct upstream_server *server, uint32_t load, char *text)
{
    if (atomic_load(&server->is_disabled))
        return "disabled";
    if (load & ENDPOINT_ABSENT)
        return "its name has no address";
    if (load & ENDPOINT_DOWN) {
        endpoint_copy_why(&server->endpoint, text);
        return text[0] != '\0' ? text : "not checked yet";
    }
    if (load & ENDPOINT_SAID_DOWN)
        return "its agent said down";
    if (load & ENDPOINT_EJECTED) {
        snprintf(text, ENDPOINT_WHY_BYTES, "ejected: connections failed in a row: %u",
                 atomic_load_explicit(&server->ejection.ejected_after, memory_order_relaxed));
        return text;
    }
    return NULL;
}

/* What the agent of ${server} answered; ${text} holds ENDPOINT_SAID_BYTES. NULL: it has none. */
static const char *upstream_figures_said(struct upstream_server *server, char *text)
{
    endpoint_copy_said(&server->endpoint, text);
    return text[0] != '\0' ? text : NULL;
}

/* What the last check of ${server} found; ${text} holds UPSTREAM_FIGURES_CHECK. NULL: none. */
static const char *upstream_figures_check(struct upstream_server *server, char *text)
{
    struct endpoint *e = &server->endpoint;
    int64_t at_ns = atomic_load_explicit(&e->checked_at_ns, memory_order_relaxed);
    int64_t took_ns = atomic_load_explicit(&e->check_ns, memory_order_relaxed);
    double ago_s = (double)(clock_now_ns() - at_ns) / NS_PER_S;
    char why[ENDPOINT_WHY_BYTES];

    if (at_ns == 0)
        return NULL;
    if (took_ns >= 0) {
        snprintf(text, UPSTREAM_FIGURES_CHECK, "passed in %.1f ms, %.1f s ago",
                 (double)took_ns / NS_PER_MS, ago_s);
    } else {
        endpoint_copy_why(e, why);
        snprintf(text, UPSTREAM_FIGURES_CHECK, "failed %.1f s ago: %s", ago_s, why);
    }
    return text;
}

void upstream_figures_connects(const struct upstream *up, const struct upstream_server *server,
                               struct figure_visitor *v)
{
    const struct figure_object object = {
        .subject = FIGURE_SERVER, .name = server->name, .owner = up->name};

    counters_connects_figures(&server->connects, &object, v);
}

void upstream_figures_server(const struct upstream *up, struct upstream_server *server,
                             struct figure_visitor *v)
{
    const struct figure_object object = {
        .subject = FIGURE_SERVER, .name = server->name, .owner = up->name};
    const struct endpoint *e = &server->endpoint;
    const struct upstream_spare *spare = atomic_load(&server->spare);
    uint32_t load = endpoint_load(e);
    char why[ENDPOINT_WHY_BYTES];
    const char *said = upstream_figures_said(server, (char[ENDPOINT_SAID_BYTES]){""});
    const struct upstream_figures_server_view view = {.state = upstream_figures_state(server, load),
                                                      .connections = load & ENDPOINT_COUNT_MASK};
    const struct upstream_figures_line_view line = {
        .address = server->address_text,
        .in_use = upstream_in_use_is(server),
        .state_age_ns =
            clock_now_ns() - atomic_load_explicit(&e->changed_at_ns, memory_order_relaxed),
        .down_reason = upstream_figures_why(server, load, why),
        .last_check = upstream_figures_check(server, (char[UPSTREAM_FIGURES_CHECK]){""}),
        .agent = said};

    figure_show_live(v, &upstream_figures_server_table, &object, &view, server);
    figure_show_live(v, &upstream_figures_line_table, &object, &line, server);
    counters_figures(&server->counters, &object, v);
    counters_connects_figures(&server->connects, &object, v);
    upstream_figures_show_time(&e->times, &object, v);
    if (spare)
        spare->ops->show(spare, &object, v);
    if (atomic_load_explicit(&server->tls_sessions, memory_order_relaxed))
        figure_show_live(v, &tls_counters_figures, &object, NULL, &server->tls); /* TLS was used */
}
