/*
 * server/server_change: changes the configuration of a server. Its start is a reload from nothing.
 *
 *   prepare each part -> [new names are looked up] -> build the server sets
 *       -> [new servers are checked, if they start down] -> prepare the rest -> commit all
 *                    \-> cancel what was prepared
 *
 * All steps run on the control loop, except those of SERVER_CREATES, which run on main. Only
 * prepare can fail. Parts are prepared and committed in the order of server_steps, and cancelled in
 * the reverse order.
 */
#include <errno.h>
#include <string.h>

#include "engine/loop.h"
#include "server/server_internal.h"

static bool server_change_has(const struct server_change *change, unsigned i)
{
    return change->phase == SERVER_RELOADS || server_steps[i].phases & change->phase;
}

static void server_change_init(struct server *sv, enum server_phase phase,
                               const struct server_reload *reload)
{
    struct server_change *change = &sv->change;

    MUST(!change->under_way);
    memset(change, 0, sizeof(*change));
    change->phase = phase;
    change->reload = *reload;
    change->aside = sv->aside;
}

static void server_change_cancel(struct server_change *change)
{
    while (change->n_prepared > 0) {
        unsigned i = --change->n_prepared;

        if (server_change_has(change, i) && server_steps[i].cancel)
            server_steps[i].cancel(change);
    }
}

static void server_change_commit(struct server_change *change)
{
    for (unsigned i = 0; i < SERVER_STEPS; i++)
        if (server_change_has(change, i) && server_steps[i].commit)
            server_steps[i].commit(change);
}

/* Prepare all that is left, then commit; cancel all after an error. -EINPROGRESS: it waits. */
static int server_change_go_on(struct server_change *change)
{
    change->waits = false;
    for (; change->n_prepared < SERVER_STEPS; change->n_prepared++) {
        const struct server_step *step = &server_steps[change->n_prepared];
        int rc = 0;

        if (atomic_load(&change->given_up))
            rc = -ECANCELED;
        else if (server_change_has(change, change->n_prepared) && step->prepare)
            rc = step->prepare(change);
        if (rc == 0)
            continue;
        change->waits = rc == -EINPROGRESS;
        if (change->waits)
            change->n_prepared++;
        else
            server_change_cancel(change);
        return rc;
    }
    server_change_commit(change);
    return 0;
}

int server_change_create(struct server *sv)
{
    const struct server_reload first = {.conf = sv->conf,
                                        .access_log = sv->events.access_log,
                                        .access_cookie = sv->events.access_cookie};

    server_change_init(sv, SERVER_CREATES, &first);
    return server_change_go_on(&sv->change);
}

/* ---- control loop ---- */

static void server_change_end(struct server_change *change, int rc)
{
    struct server_reload reload = change->reload;

    change->under_way = false;
    reload.done(reload.cookie, rc);
}

static void server_end_change(struct task *t)
{
    server_change_end(CONTAINER_OF(t, struct server_change, task), 0);
}

static const struct task_type server_end_type = {
    .name = "end of a reload", .run = server_end_change, .drop = server_end_change};

/* The end comes after the tasks that the commit has submitted, such as log lines of names. */
static void server_change_step(struct server_change *change)
{
    int rc = server_change_go_on(change);

    if (rc == -EINPROGRESS)
        return;
    change->task.type = &server_end_type;
    if (rc < 0 || loop_submit(threads_control(&server_of_change(change)->threads), LOOP_CONTROL,
                              &change->task) < 0)
        server_change_end(change, rc);
}

static void server_change_fail(struct server_change *change, int rc)
{
    change->waits = false;
    server_change_cancel(change);
    server_change_end(change, rc);
}

void server_change_names_ready(void *cookie, int error)
{
    if (error < 0)
        server_change_fail(cookie, error);
    else
        server_change_step(cookie);
}

void server_change_checks_ready(void *cookie)
{
    server_change_step(cookie);
}

static void server_run_give_up(struct task *t)
{
    struct server_change *change = CONTAINER_OF(t, struct server_change, give_up);

    if (change->waits)
        server_change_fail(change, -ECANCELED);
}

static const struct task_type server_give_up_type = {.name = "give up a reload",
                                                     .run = server_run_give_up};

static void server_run_change(struct task *t)
{
    server_change_step(CONTAINER_OF(t, struct server_change, task));
}

static void server_drop_change(struct task *t)
{
    server_change_end(CONTAINER_OF(t, struct server_change, task), -ESHUTDOWN);
}

static const struct task_type server_change_type = {
    .name = "reload", .run = server_run_change, .drop = server_drop_change};

int server_change_begin(struct server *sv, enum server_phase phase,
                        const struct server_reload *reload)
{
    struct server_change *change = &sv->change;
    int rc;

    server_change_init(sv, phase, reload);
    change->under_way = true;
    change->task.type = &server_change_type;
    change->give_up.type = &server_give_up_type;
    rc = loop_submit(threads_control(&sv->threads), LOOP_CONTROL, &change->task);
    if (rc < 0)
        change->under_way = false;
    return rc;
}

int server_reload(struct server *sv, const struct server_reload *reload)
{
    return server_change_begin(sv, SERVER_RELOADS, reload);
}

int server_edit(struct server *sv, const struct server_reload *edit)
{
    return server_change_begin(sv, SERVER_EDITS, edit);
}

int server_resize(struct server *sv, const struct server_reload *resize)
{
    return server_change_begin(sv, SERVER_RESIZES, resize);
}

void server_reload_give_up(struct server *sv)
{
    struct server_change *change = &sv->change;

    if (!change->under_way || atomic_exchange(&change->given_up, true))
        return;
    if (loop_submit(threads_control(&sv->threads), LOOP_CONTROL, &change->give_up) < 0)
        return; /* the loop ends */
}
