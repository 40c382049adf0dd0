/* server/checks_trial: first checks of the servers of a new configuration, before its commit. */
#include "base/clock.h"
#include "base/log.h"
#include "server/checks_internal.h"
#include "upstream/upstream.h"

static unsigned checks_untried(const struct checks_change *change)
{
    unsigned n = 0;

    for (unsigned i = 0; i < change->n; i++)
        n += change->steps[i].trial ? checker_group_undecided(change->steps[i].trial) : 0;
    return n;
}

static void checks_run_tried(struct task *t)
{
    struct checks_change *change = TIMER_OWNER(t, struct checks_change, tried);
    unsigned n = checks_untried(change);

    if (n > 0)
        log_warning("health checks: %u new servers have no result after %g s: they get no clients "
                    "until their checks pass (initial_state)",
                    n, (double)change->try_ns / NS_PER_S);
    change->done(change->cookie);
}

const struct task_type checks_tried_type = {.name = "first checks of a reload",
                                            .run = checks_run_tried};

static void checks_on_decided(void *cookie)
{
    struct checks_change *change = cookie;
    struct loop *control = change->checks->conf.control;

    if (change->tried.state == TIMER_IDLE || checks_untried(change) > 0)
        return;
    loop_cancel(control, &change->tried);
    loop_schedule(control, &change->tried, 0);
}

static int checks_open_trial(struct checks_change *change, struct checks_step *step,
                             const struct upstream_conf *conf)
{
    struct checks *c = change->checks;
    /* with_absent: a server that was removed may come back */
    struct checker_group_conf group = {.name = step->upstream->name,
                                       .decided = checks_on_decided,
                                       .cookie = change,
                                       .with_absent = true};
    int64_t try_ns = upstream_first_checks_ns(conf);
    int rc = checker_group_create(&step->trial, c->checker, &group);

    if (rc < 0)
        return rc;
    checker_group_use(step->trial, checker_rules_hold(step->rules));
    if (change->at_a_time > c->at_a_time)
        checker_set_limit(c->checker, change->at_a_time);
    change->try_ns = try_ns > change->try_ns ? try_ns : change->try_ns;
    return 0;
}

int checks_try(struct checks_change *change, unsigned i, const struct upstream_conf *conf,
               struct upstream_server *server, const struct upstream_server_conf *line)
{
    struct checks_step *step = &change->steps[i];
    const struct checker_target_conf target = checks_target(server, line);
    int rc = step->trial ? 0 : checks_open_trial(change, step, conf);

    if (rc < 0)
        return rc;
    (void)endpoint_set_flag(&server->endpoint, ENDPOINT_DOWN);
    return checker_add(server->target, step->trial, &target);
}

bool checks_wait(struct checks_change *change, int64_t max_ns, void (*done)(void *cookie),
                 void *cookie)
{
    if (checks_untried(change) == 0)
        return false;
    change->try_ns = change->try_ns < max_ns ? change->try_ns : max_ns;
    change->done = done;
    change->cookie = cookie;
    loop_schedule(change->checks->conf.control, &change->tried, change->try_ns);
    return true;
}

void checks_end_trials(struct checks_change *change)
{
    struct checks *c = change->checks;

    for (unsigned i = 0; i < change->n; i++) {
        if (change->steps[i].trial)
            checker_group_close(change->steps[i].trial);
        change->steps[i].trial = NULL;
    }
    if (change->tried.state != TIMER_IDLE)
        loop_cancel(c->conf.control, &change->tried);
    if (change->try_ns > 0)
        checker_set_limit(c->checker, c->at_a_time);
    change->try_ns = 0;
}
