/* server/checks_agent: what the agents of servers say, put into effect. See check/agent.h. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "check/agent.h"
#include "server/checks_internal.h"
#include "upstream/membership_admin.h"
#include "upstream/upstream.h"

/* One log line for the first of several bad answers, and one for the next good one. */
static void checks_agent_refuse(const struct upstream *up, struct upstream_server *server,
                                const char *why)
{
    char said[ENDPOINT_SAID_BYTES];

    snprintf(said, sizeof(said), "(%.*s)", (int)sizeof(said) - (int)sizeof("()"), why);
    endpoint_set_said(&server->endpoint, said);
    if (!server->agent_is_bad)
        log_warning(
            "upstream %s: server %s: its agent has no valid answer: %s; what it said before "
            "stays in force",
            up->name, server->name, why);
    server->agent_is_bad = true;
}

static bool checks_agent_is_whole_line(const struct server_line *line)
{
    return line->conf.names == UPSTREAM_LITERAL || line->conf.names == UPSTREAM_NAME_ONE;
}

/* The agent's words replace settings by an administrator, and the other way round: as HAProxy. */
static struct server_line_admin checks_agent_edit(const struct agent_answer *a,
                                                  const struct server_line *line,
                                                  const struct server_line_admin *before)
{
    struct server_line_admin admin = *before;
    bool one = !checks_agent_is_whole_line(line), records = line->conf.names == UPSTREAM_SERVICE;

    switch (a->use) {
    case AGENT_SAYS_NO_USE: break;
    case AGENT_SAYS_READY: admin.state = server_line_ready(line, one); break;
    case AGENT_SAYS_DRAIN: admin.state = SERVER_LINE_DRAIN; break;
    case AGENT_SAYS_MAINT: admin.state = SERVER_LINE_DISABLED; break;
    }
    if (a->has_percent && !records) {
        admin.weight = agent_weight(line->conf.weight, a->percent);
        admin.has_weight = (int)admin.weight != server_line_plain_weight(line, one);
    }
    if (a->has_max_connections) {
        admin.max_connections = a->max_connections;
        admin.has_max = a->max_connections != line->conf.max_connections;
    }
    return admin;
}

static bool checks_agent_is_same(const struct server_line_admin *a,
                                 const struct server_line_admin *b)
{
    return a->state == b->state && a->has_weight == b->has_weight && a->has_max == b->has_max &&
           (!a->has_weight || a->weight == b->weight) &&
           (!a->has_max || a->max_connections == b->max_connections);
}

/* True if the settings of ${server} changed; during a reload false: the next answer tries again. */
static bool checks_agent_use(struct upstream *up, struct upstream_server *server,
                             const struct agent_answer *answer)
{
    struct server_line *line = server->line;
    struct membership *m = &up->membership;
    struct server_line_admin before, admin;
    int rc;

    before =
        checks_agent_is_whole_line(line) ? line->admin : server_line_own_get(line, server->name);
    admin = checks_agent_edit(answer, line, &before);
    if (checks_agent_is_same(&before, &admin))
        return false;
    rc = checks_agent_is_whole_line(line) ? membership_admin_set(m, line, &admin, 0)
                                          : membership_admin_set_one(m, line, server->name, &admin);
    return rc == 0;
}

/* True if ${server} went down or came up by its agent. */
static bool checks_agent_turn(struct upstream_server *server, enum agent_health health)
{
    if (health == AGENT_SAYS_DOWN)
        return endpoint_set_flag(&server->endpoint, ENDPOINT_SAID_DOWN);
    return health == AGENT_SAYS_UP && endpoint_clear_flag(&server->endpoint, ENDPOINT_SAID_DOWN);
}

static const char *checks_agent_word(const struct upstream_server *server,
                                     const struct agent_answer *a, bool has_turned)
{
    if (has_turned && a->health == AGENT_SAYS_DOWN)
        return "down";
    if (has_turned)
        return endpoint_load(&server->endpoint) & ENDPOINT_DOWN ? "down by its checks alone" : "up";
    switch (a->use) {
    case AGENT_SAYS_READY: return "enabled";
    case AGENT_SAYS_DRAIN: return "draining";
    case AGENT_SAYS_MAINT: return "disabled";
    case AGENT_SAYS_NO_USE: break;
    }
    return a->has_percent ? "another weight" : "another max_connections";
}

static void checks_agent_log(const struct upstream *up, const struct upstream_server *server,
                             const struct agent_answer *a, bool has_turned, const char *line)
{
    bool is_out =
        a->health == AGENT_SAYS_DOWN || a->use == AGENT_SAYS_DRAIN || a->use == AGENT_SAYS_MAINT;
    unsigned n_used, n_up = membership_count_up(&up->membership, &n_used);

    log_event(LOG_SERVER, is_out ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE,
              "upstream %s: server %s: %s: its agent says '%s'; servers up: %u of %u", up->name,
              server->name, checks_agent_word(server, a, has_turned), line, n_up, n_used);
}

static void checks_agent_take(struct checks_group *g, struct upstream_server *server,
                              const char *line)
{
    struct upstream *up = g->upstream;
    struct agent_answer answer;
    char text[ENDPOINT_WHY_BYTES];
    const char *bad = agent_parse(&answer, line);
    bool is_changed, has_turned;

    if (bad) {
        snprintf(text, sizeof(text), "%s: '%s'", bad, line);
        checks_agent_refuse(up, server, text);
        return;
    }
    endpoint_set_said(&server->endpoint, line);
    if (server->agent_is_bad)
        log_event(LOG_SERVER, LOG_LEVEL_NOTICE, "upstream %s: server %s: its agent answers again",
                  up->name, server->name);
    server->agent_is_bad = false;
    is_changed = checks_agent_use(up, server, &answer);
    has_turned = checks_agent_turn(server, answer.health);
    if (is_changed || has_turned)
        checks_agent_log(up, server, &answer, has_turned, line);
    if (has_turned)
        checks_changed(g, &server->endpoint, answer.health == AGENT_SAYS_UP);
}

void checks_agent_answered(void *cookie, struct endpoint *e, const struct check *c)
{
    struct checks_group *g = cookie;
    struct upstream_server *server = upstream_server_of(e);
    char text[CHECK_TEXT_BYTES];

    if (c->result.outcome == CHECK_PASSED)
        checks_agent_take(g, server, c->line.text);
    else
        checks_agent_refuse(g->upstream, server, check_describe(text, sizeof(text), &c->result));
}

void checks_agent_remove(struct upstream_server *server)
{
    if (!checker_has(server->agent))
        return;
    checker_remove(server->agent);
    server->agent_is_bad = false;
    endpoint_set_said(&server->endpoint, "");
    (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_SAID_DOWN);
}

void checks_agent_look(struct checks_group *g, struct upstream_server *server)
{
    const struct upstream_conf *conf = g->upstream->conf;
    const struct upstream_server_conf *line = server->conf;
    const struct checker_target_conf target = {.endpoint = &server->endpoint,
                                               .address = line->agent_address,
                                               .port = line->agent_address    ? 0
                                                       : line->agent_port > 0 ? line->agent_port
                                                                              : conf->agent.port};

    if (!g->has_agents || !upstream_has_agent(conf, line))
        checks_agent_remove(server);
    else if (checker_has(server->agent))
        checker_use(server->agent, &target);
    else if (checker_add(server->agent, g->agents, &target) < 0)
        (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_SAID_DOWN);
}

bool checks_agent_wanted(const struct upstream_conf *conf)
{
    for (unsigned i = 0; i < conf->n_servers; i++)
        if (upstream_has_agent(conf, &conf->servers[i]))
            return true;
    return false;
}

int checks_agent_rules(struct checker_rules **out, const struct upstream_conf *conf)
{
    struct checker_rules_conf rules = {
        .memory = conf->memory,
        .check = {.send = conf->agent.send,
                  .wants_line = true,
                  .timeout_ns = conf->agent.interval_ns,
                  .connect = conf->connect},
        .header = CHECKER_HEADER_NO,
        .health = {.initial = HEALTH_STARTS_UP,
                   .rise = 1,
                   .fall = 1,
                   .interval_ns = conf->agent.interval_ns,
                   .jitter_percent = conf->checks.health.jitter_percent}};

    rules.check.connect.attempt_delay_ns = 0;
    return checker_rules_create(out, &rules);
}
