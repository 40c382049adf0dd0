/* admin/admin_ops: what the admin interface asks of the daemon. */
#ifndef ADMIN_ADMIN_OPS_H
#define ADMIN_ADMIN_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/task.h"
#include "handover/handoff_figures.h"

struct admin_request;
struct figure_visitor;

enum admin_state { ADMIN_SERVING, ADMIN_DRAINING };

enum admin_action_kind {
    ADMIN_RELOAD,
    ADMIN_CONFIRM,
    ADMIN_REVERT,
    ADMIN_UPGRADE,
    ADMIN_DUMP_CONFIG,
    ADMIN_EDIT_SERVER,
    ADMIN_SET_WORKERS,
    ADMIN_UNDO_EDITS /* and SET_WORKERS */
};

#define ADMIN_CONFIRM_AS_CONFIGURED (-1) /* confirm_ns: as reload_confirm says */

/* A request to the main thread. */
struct admin_action {
    struct task task;          /* submitted by admin_action_done() */
    struct admin_action *next; /* link in the daemon's mailbox */
    struct admin_request *request;
    enum admin_action_kind kind;
    bool dry_run;       /* RELOAD: only check */
    int64_t confirm_ns; /* RELOAD: time to confirm; 0: no confirmation needed */
    unsigned workers;   /* SET_WORKERS */
    /* EDIT_SERVER: the server, and its line; NULL: remove it. Valid until the answer. */
    const char *upstream, *server, *line;
    /* The answer. */
    bool done;
    bool stopping;         /* not carried out, because the process ends */
    int rc;                /* EDIT_SERVER: as config_edits_server(), or another error */
    char error[256];       /* if not done, the reason */
    char *text;            /* messages, changes or the configuration; NULL: no text */
    unsigned n_up, n_used; /* EDIT_SERVER: as in struct server_edit */
    unsigned n_sessions;
};

/* State of the process, for /v1/status. */
struct admin_status {
    const char *config_path;
    const char *reload; /* "idle", "applying" or "unconfirmed" */
    unsigned reloads, reloads_failed, reloads_reverted;
    int64_t confirm_by_ns; /* CLOCK_NEVER: nothing to confirm */
    unsigned old_processes;
    struct handoff_figures handoff;
    unsigned edits; /* servers that an administrator added or removed */
};

/* Implemented by the daemon. */
struct admin_ops {
    /* On the admin loop: pass ${action} to the main thread, which calls admin_action_done(). */
    void (*submit)(void *cookie, struct admin_action *action);
    /* On the admin loop: fill in ${out}, without waiting for the main thread. */
    void (*status)(void *cookie, struct admin_status *out);
    /* On the admin loop: visit the figures of access logs, and of the last hand-off of sessions. */
    void (*figures)(void *cookie, struct figure_visitor *v);
    void *cookie;
};

#endif
