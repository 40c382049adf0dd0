#include "reload/process_change.h"

#include <errno.h>
#include <stdbool.h>

static bool process_change_has(const struct process_change *change, unsigned i)
{
    return process_steps[i].phases & change->phase;
}

static void process_change_cancel(struct process_change *change, int rc)
{
    change->rc = rc;
    while (change->n_prepared > 0) {
        unsigned i = --change->n_prepared;

        if (process_change_has(change, i) && process_steps[i].cancel)
            process_steps[i].cancel(change);
    }
}

static void process_change_commit(struct process_change *change)
{
    for (unsigned i = 0; i < PROCESS_STEPS; i++)
        if (process_steps[i].commit)
            process_steps[i].commit(change);
}

int process_change_go_on(struct process_change *change, int rc)
{
    while (rc == 0 && change->n_prepared < PROCESS_STEPS) {
        unsigned i = change->n_prepared;

        if (process_change_has(change, i) && process_steps[i].prepare)
            rc = process_steps[i].prepare(change);
        change->n_prepared += rc == 0 || rc == -EINPROGRESS;
    }
    if (rc == 0)
        process_change_commit(change);
    else if (rc != -EINPROGRESS)
        process_change_cancel(change, rc);
    return rc;
}

int process_change_begin(struct process_change *change)
{
    return process_change_go_on(change, 0);
}

void process_change_close(struct process *p, struct config *config, int rc)
{
    struct process_change start = {
        .process = p, .phase = PROCESS_STARTS, .next = config, .n_prepared = PROCESS_STEPS};

    process_change_cancel(&start, rc);
}
