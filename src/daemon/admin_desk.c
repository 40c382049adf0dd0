#include "daemon/admin_desk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/event_fd.h"
#include "base/log.h"
#include "base/text_stream.h"
#include "config/config.h"
#include "log/access_logs.h"
#include "reload/reload.h"
#include "reload/reload_edits.h"
#include "upgrade/upgrade.h"
#include "engine/lock.h"

struct admin_desk {
    struct admin *admin; /* NULL: no admin interface */
    struct admin_desk_conf conf;
    int fd;
    struct admin_action *reload, *upgrade;        /* actions under way; NULL: none */
    struct admin_action *waiting, **last_waiting; /* taken, in their order; for ends of edits */
    struct lock lock;                             /* guards the members below */
    struct admin_action *first, **last;
    bool closed;
    struct admin_status status;
};

/* ---- admin loop ---- */

static void admin_desk_refuse_late(struct admin_desk *desk, struct admin_action *action)
{
    action->stopping = true;
    snprintf(action->error, sizeof(action->error), "the process ends");
    admin_action_done(desk->admin, action);
}

static void admin_desk_submit(void *cookie, struct admin_action *action)
{
    struct admin_desk *desk = cookie;
    bool closed;

    action->next = NULL;
    lock_take(&desk->lock);
    closed = desk->closed;
    if (!closed) {
        *desk->last = action;
        desk->last = &action->next;
    }
    lock_release(&desk->lock);
    if (closed)
        admin_desk_refuse_late(desk, action);
    else
        (void)event_fd_signal(desk->fd);
}

static void admin_desk_status(void *cookie, struct admin_status *out)
{
    struct admin_desk *desk = cookie;

    lock_take(&desk->lock);
    *out = desk->status;
    lock_release(&desk->lock);
}

static void admin_desk_figures(void *cookie, struct figure_visitor *v)
{
    const struct admin_desk *desk = cookie;
    struct admin_status status;

    admin_desk_status(cookie, &status);
    handoff_figures_show(&status.handoff, v);
    access_logs_figures(desk->conf.access_logs, v);
}

/* ---- main ---- */

static int admin_desk_create_admin(struct admin_desk *desk, const struct admin_conf *conf,
                                   const struct admin_env *env)
{
    int rc;

    desk->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (desk->fd < 0)
        return -errno;
    rc = admin_create(&desk->admin, conf, env);
    if (rc < 0)
        close(desk->fd);
    return rc;
}

int admin_desk_create(struct admin_desk **out, const struct admin_conf *conf, struct server *server,
                      const struct socket_store *sockets)
{
    struct admin_desk *desk = calloc(1, sizeof(*desk));
    const struct admin_env env = {.server = server,
                                  .sockets = sockets,
                                  .ops = {.submit = admin_desk_submit,
                                          .status = admin_desk_status,
                                          .figures = admin_desk_figures,
                                          .cookie = desk}};
    int rc = desk ? admin_desk_create_admin(desk, conf, &env) : -ENOMEM;

    if (rc < 0) {
        log_error("admin: cannot create the interface: %s", strerror(-rc));
        free(desk);
        return rc;
    }
    lock_init(&desk->lock);
    desk->last = &desk->first;
    desk->last_waiting = &desk->waiting;
    *out = desk;
    return 0;
}

struct admin *admin_desk_admin(const struct admin_desk *desk)
{
    return desk->admin;
}

void admin_desk_configure(const struct admin_desk *desk, const struct admin_conf *conf)
{
    admin_configure(desk->admin, conf);
}

static void admin_desk_publish(struct admin_desk *desk)
{
    struct reload_status reload;
    struct admin_status now = {.config_path = desk->conf.config_path,
                               .reload = "idle",
                               .old_processes = upgrade_old(desk->conf.upgrade)};

    upgrade_handoff(desk->conf.upgrade, &now.handoff);
    reload_status(desk->conf.reload, &reload);
    now.reloads = reload.n_done;
    now.reloads_failed = reload.n_failed;
    now.reloads_reverted = reload.n_reverted;
    now.confirm_by_ns = reload.confirm_by_ns;
    now.edits = reload.n_edits;
    if (reload.is_applying)
        now.reload = "applying";
    else if (reload.confirm_by_ns != CLOCK_NEVER)
        now.reload = "unconfirmed";
    lock_take(&desk->lock);
    desk->status = now;
    lock_release(&desk->lock);
}

void admin_desk_open(struct admin_desk *desk, const struct admin_desk_conf *conf)
{
    desk->conf = *conf;
    admin_desk_publish(desk);
}

int admin_desk_fd(const struct admin_desk *desk)
{
    return desk->fd;
}

/* Send ${action} back to the admin loop. ${error} NULL: it succeeded. */
static void admin_desk_answer(struct admin_desk *desk, struct admin_action *action,
                              const char *error)
{
    action->done = error == NULL;
    if (error)
        snprintf(action->error, sizeof(action->error), "%s", error);
    admin_desk_publish(desk); /* first: after the answer the client may ask for the status */
    admin_action_done(desk->admin, action);
}

static void admin_desk_reloaded(void *cookie, const char *error, const char *lines)
{
    struct admin_desk *desk = cookie;
    struct admin_action *action = desk->reload;

    desk->reload = NULL;
    if (lines && *lines != '\0')
        action->text = strdup(lines);
    admin_desk_answer(desk, action, error);
}

static const char *admin_desk_reload_error(int rc)
{
    return rc == -ENOENT ? "nothing waits to be confirmed" : "a reload is under way";
}

static void admin_desk_reload(struct admin_desk *desk, struct admin_action *action)
{
    const struct reload_request request = {.dry_run = action->dry_run,
                                           .confirm_ns = action->confirm_ns,
                                           .done = admin_desk_reloaded,
                                           .cookie = desk};
    int rc = -EBUSY;

    if (!desk->reload) {
        desk->reload = action; /* before the call, which may answer the action */
        rc = action->kind == ADMIN_REVERT ? reload_revert(desk->conf.reload, &request)
                                          : reload_begin_request(desk->conf.reload, &request);
        if (rc < 0)
            desk->reload = NULL;
    }
    if (rc < 0)
        admin_desk_answer(desk, action, admin_desk_reload_error(rc));
}

static void admin_desk_confirm(struct admin_desk *desk, struct admin_action *action)
{
    int rc = reload_confirm(desk->conf.reload);

    admin_desk_answer(desk, action, rc < 0 ? admin_desk_reload_error(rc) : NULL);
}

static void admin_desk_upgrade(struct admin_desk *desk, struct admin_action *action)
{
    const struct process_conf *process = &reload_running(desk->conf.reload)->process;

    if (reload_is_open(desk->conf.reload))
        admin_desk_answer(desk, action, "a reload is under way, or not confirmed yet");
    else if (upgrade_begin(desk->conf.upgrade, process->upgrade_timeout_ns,
                           process->max_old_processes) < 0)
        admin_desk_answer(desk, action, upgrade_failure(desk->conf.upgrade));
    else
        desk->upgrade = action;
}

static void admin_desk_dump(struct admin_desk *desk, struct admin_action *action)
{
    size_t size;
    FILE *f = open_memstream(&action->text, &size);
    int rc = f ? config_dump(reload_running(desk->conf.reload), f) : -ENOMEM;

    if (f && text_stream_close(f, &action->text) < 0)
        rc = -ENOMEM;
    admin_desk_answer(desk, action, rc < 0 ? strerror(-rc) : NULL);
}

/* ---- edits ---- */

struct admin_desk_edit {
    struct reload_edit edit;
    struct admin_desk *desk;
    struct admin_action *action;
};

static void admin_desk_edited(struct reload_edit *edit, const char *error)
{
    struct admin_desk_edit *e = CONTAINER_OF(edit, struct admin_desk_edit, edit);
    struct admin_action *action = e->action;

    action->rc = edit->rc;
    action->stopping = error && strcmp(error, RELOAD_EDITS_ENDED) == 0;
    if (error && action->kind != ADMIN_SET_WORKERS)
        action->text = strdup(error); /* `action->error` may be too short for it */
    action->n_up = edit->result.n_up;
    action->n_used = edit->result.n_used;
    action->n_sessions = edit->result.n_sessions;
    admin_desk_answer(e->desk, action, error);
    free(e);
}

/* The number of workers is as configured again; or that has failed. */
static void admin_desk_undo_servers(struct reload_edit *edit, const char *error)
{
    struct admin_desk_edit *e = CONTAINER_OF(edit, struct admin_desk_edit, edit);

    if (error) {
        admin_desk_edited(edit, error);
        return;
    }
    *edit = (struct reload_edit){.kind = RELOAD_EDIT_UNDO, .done = admin_desk_edited};
    reload_edit(e->desk->conf.reload, edit);
}

static void admin_desk_edit(struct admin_desk *desk, struct admin_action *action)
{
    struct admin_desk_edit *e = calloc(1, sizeof(*e));

    if (!e) {
        admin_desk_answer(desk, action, strerror(ENOMEM));
        return;
    }
    e->desk = desk;
    e->action = action;
    if (action->kind != ADMIN_EDIT_SERVER) {
        e->edit = (struct reload_edit){.kind = RELOAD_EDIT_WORKERS,
                                       .workers = action->workers,
                                       .done = action->kind == ADMIN_SET_WORKERS
                                                   ? admin_desk_edited
                                                   : admin_desk_undo_servers};
        reload_edit(desk->conf.reload, &e->edit);
        return;
    }
    e->edit = (struct reload_edit){.upstream = action->upstream,
                                   .server = action->server,
                                   .line = action->line,
                                   .done = admin_desk_edited};
    reload_edit(desk->conf.reload, &e->edit);
}

static bool admin_desk_is_edit(const struct admin_action *action)
{
    return action->kind == ADMIN_EDIT_SERVER || action->kind == ADMIN_UNDO_EDITS ||
           action->kind == ADMIN_SET_WORKERS;
}

/* Is a reload under way, not edits? */
static bool admin_desk_reloads(const struct admin_desk *desk)
{
    struct reload_status status;

    reload_status(desk->conf.reload, &status);
    return status.is_applying;
}

/* Edits wait for each other, and for a reload only to be refused; other actions wait for edits. */
static bool admin_desk_must_wait(const struct admin_desk *desk, const struct admin_action *action)
{
    return action->kind != ADMIN_DUMP_CONFIG && !admin_desk_is_edit(action) &&
           reload_edits_are_open(desk->conf.reload);
}

static const char *admin_desk_obstacle(const struct admin_desk *desk, const char *obstacle)
{
    if (!obstacle && upgrade_is_starting(desk->conf.upgrade))
        return "an upgrade is under way";
    return obstacle;
}

static void admin_desk_act(struct admin_desk *desk, struct admin_action *action,
                           const char *obstacle)
{
    if (action->kind == ADMIN_DUMP_CONFIG) {
        admin_desk_dump(desk, action);
        return;
    }
    if (obstacle) {
        admin_desk_answer(desk, action, obstacle);
        return;
    }
    if (admin_desk_is_edit(action) && admin_desk_reloads(desk)) {
        admin_desk_answer(desk, action, "a reload is under way");
        return;
    }
    switch (action->kind) {
    case ADMIN_EDIT_SERVER:
    case ADMIN_SET_WORKERS:
    case ADMIN_UNDO_EDITS: admin_desk_edit(desk, action); break;
    case ADMIN_RELOAD:
    case ADMIN_REVERT: admin_desk_reload(desk, action); break;
    case ADMIN_CONFIRM: admin_desk_confirm(desk, action); break;
    case ADMIN_UPGRADE: admin_desk_upgrade(desk, action); break;
    case ADMIN_DUMP_CONFIG: break;
    }
}

/* Answer the upgrade request, if the upgrade has ended. */
static void admin_desk_look_at_upgrade(struct admin_desk *desk)
{
    struct admin_action *action = desk->upgrade;

    if (!action || upgrade_is_starting(desk->conf.upgrade))
        return;
    desk->upgrade = NULL;
    admin_desk_answer(
        desk, action,
        upgrade_is_replaced(desk->conf.upgrade) ? NULL : upgrade_failure(desk->conf.upgrade));
}

static struct admin_action *admin_desk_take_all(struct admin_desk *desk)
{
    struct admin_action *list;

    lock_take(&desk->lock);
    list = desk->first;
    desk->first = NULL;
    desk->last = &desk->first;
    lock_release(&desk->lock);
    return list;
}

static void admin_desk_wait(struct admin_desk *desk, struct admin_action *list)
{
    *desk->last_waiting = list;
    while (*desk->last_waiting)
        desk->last_waiting = &(*desk->last_waiting)->next;
}

static struct admin_action *admin_desk_take_waiting(struct admin_desk *desk)
{
    struct admin_action *action = desk->waiting;

    desk->waiting = action->next;
    if (!desk->waiting)
        desk->last_waiting = &desk->waiting;
    return action;
}

static void admin_desk_act_on_all(struct admin_desk *desk, const char *obstacle)
{
    eventfd_t n;

    (void)eventfd_read(desk->fd, &n);
    admin_desk_wait(desk, admin_desk_take_all(desk));
    while (desk->waiting && !admin_desk_must_wait(desk, desk->waiting))
        admin_desk_act(desk, admin_desk_take_waiting(desk), admin_desk_obstacle(desk, obstacle));
}

void admin_desk_step(struct admin_desk *desk, const char *obstacle)
{
    if (desk->admin)
        admin_desk_act_on_all(desk, obstacle);
    reload_edits_step(desk->conf.reload, admin_desk_obstacle(desk, obstacle));
    admin_desk_look_at_upgrade(desk);
    admin_desk_publish(desk);
}

void admin_desk_close(struct admin_desk *desk)
{
    if (!desk->admin)
        return;
    lock_take(&desk->lock);
    desk->closed = true;
    lock_release(&desk->lock);
    admin_desk_wait(desk, admin_desk_take_all(desk));
    while (desk->waiting)
        admin_desk_refuse_late(desk, admin_desk_take_waiting(desk));
    reload_edits_drop(desk->conf.reload);
    reload_drop_request(desk->conf.reload);
    if (desk->reload)
        admin_desk_refuse_late(desk, desk->reload);
    if (desk->upgrade)
        admin_desk_refuse_late(desk, desk->upgrade);
    desk->reload = desk->upgrade = NULL;
}

void admin_desk_destroy(struct admin_desk *desk)
{
    if (!desk)
        return;
    admin_destroy(desk->admin);
    close(desk->fd);
    lock_close(&desk->lock);
    free(desk);
}
