/* server/checks_internal: shared by checks.c and checks_trial.c. */
#ifndef SERVER_CHECKS_INTERNAL_H
#define SERVER_CHECKS_INTERNAL_H

#include <stdbool.h>

#include "base/list.h"
#include "check/checker.h"
#include "engine/loop.h"
#include "server/checks.h"

struct netloop;

struct checks_group {
    struct list link;
    struct checks *checks;
    struct upstream *upstream;
    struct checker_group *group;
    bool is_kept; /* the commit under way keeps this group */
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
    struct checks_group *group; /* NULL: the upstream is not checked */
    struct checker_rules *rules;
    struct checker_group *trial; /* servers checked before the commit; NULL: none */
};

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
