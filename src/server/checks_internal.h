/* server/checks_internal: shared by checks.c and checks_trial.c. */
#ifndef SERVER_CHECKS_INTERNAL_H
#define SERVER_CHECKS_INTERNAL_H

#include <stdbool.h>

#include "base/list.h"
#include "check/checker.h"
#include "engine/loop.h"
#include "server/checks.h"

struct netloop;
struct upstream_conf;
struct upstream_server;

struct checks_group {
    struct list link;
    struct checks *checks;
    struct upstream *upstream;
    struct checker_group *group;
    struct checker_group *agents; /* targets: the agents of the servers */
    bool has_checks;              /* else only agents */
    bool has_agents;              /* `agents` has the rules of the configuration in use */
    bool is_kept;                 /* the commit under way keeps this group */
};

struct checks {
    struct checks_conf conf;
    struct netloop *net; /* NULL: no upstream has had checks yet */
    struct checker *checker;
    struct list groups;
    unsigned at_a_time; /* limit of the last commit */
};

struct checks_step {
    struct upstream *upstream;
    struct checks_group *group;        /* NULL: the upstream is not checked */
    struct checker_rules *rules;       /* NULL: only agents */
    struct checker_rules *agent_rules; /* NULL: no agents */
    struct checker_group *trial;       /* servers checked before the commit; NULL: none */
};

/*
 * checks_changed(cookie, e, is_up):
 * Let waiting clients in, or evict sessions, after ${e} of the checks_group ${cookie} changed.
 *
 * Thread: control loop
 */
void checks_changed(void *cookie, struct endpoint *e, bool is_up);

/*
 * checks_agent_wanted(conf) / checks_agent_rules(out, conf):
 * Has a server an agent? / create the rules for asking agents.
 *
 * Thread: control loop, or main before start
 * Errors: as checker_rules_create()
 */
bool checks_agent_wanted(const struct upstream_conf *conf);
int checks_agent_rules(struct checker_rules **out, const struct upstream_conf *conf) NODISCARD;

/*
 * checks_agent_answered(cookie, e, c) / checks_agent_look(g, server) / checks_agent_remove(server):
 * Put the answer of the agent of ${e} into effect / ask the agent of ${server}, if it has one / ask
 * it no more, and forget that it said down.
 *
 * Thread: control loop
 */
void checks_agent_answered(void *cookie, struct endpoint *e, const struct check *c);
void checks_agent_look(struct checks_group *g, struct upstream_server *server);
void checks_agent_remove(struct upstream_server *server);

struct checks_change {
    struct checks *checks;
    struct timer tried; /* ends the trials */
    int64_t try_ns;     /* longest time for them */
    void (*done)(void *cookie);
    void *cookie;
    unsigned at_a_time;
    unsigned n;
    struct checks_step steps[];
};

/*
 * checks_target(server, line):
 * Return how ${server} is checked by its server line.
 *
 * Thread: control loop
 */
struct checker_target_conf checks_target(struct upstream_server *server,
                                         const struct upstream_server_conf *line);

/* Task type of checks_change.tried. */
extern const struct task_type checks_tried_type;

#endif
