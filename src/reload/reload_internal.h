/*
 * reload/reload_internal: struct reload, for reload/reload.c and reload/reload_request.c.
 */
#ifndef RELOAD_RELOAD_INTERNAL_H
#define RELOAD_RELOAD_INTERNAL_H

#include "reload/process_change.h"
#include "reload/reload.h"
#include "engine/task.h"

struct config_compare;
struct reload_edit;

enum reload_state {
    RELOAD_IDLE,
    RELOAD_LOADING,
    RELOAD_APPLYING,
    RELOAD_EDITING /* `next` has the edits of a batch; NULL: the number of workers changes */
};

/* See reload/reload_edits. */
struct reload_edits {
    struct reload_edit *first, *last; /* queued; NULL: none */
    struct reload_edit *batch;        /* under way */
    struct server_edit *results;      /* of the batch, used by the control loop meanwhile */
    unsigned n_results;
    unsigned n_left;  /* edits that the batch may still take */
    unsigned n_alone; /* edits that are made one by one, because one of them has failed */
};

struct reload {
    struct process *process;
    struct config *running;
    enum reload_state state;
    bool again; /* another reload was requested during this one */
    /* previous configuration, until the new one is confirmed; NULL: none */
    struct config *confirmed;
    int64_t confirm_by_ns;         /* CLOCK_NEVER: nothing to confirm */
    bool is_retry;                 /* a restore has failed; try again at `confirm_by_ns` */
    bool returning;                /* the reload restores the previous configuration, `next` */
    bool given_up;                 /* reload_give_up() was called */
    bool refused;                  /* the last reload was refused */
    struct reload_request request; /* of the reload under way */
    unsigned n_done, n_failed, n_reverted;
    int step_fd;
    struct task load;
    /*
     * Executor or control loop write `rc` to `change`, then `step_fd`; main reads them afterwards.
     */
    int rc;
    struct config *next;
    char *problems; /* errors and warnings of config_reload() */
    size_t problems_len;
    struct process_change change;
    struct config_compare *changes;
    struct reload_edits edits;
};

/* The request of SIGHUP, without done(). */
extern const struct reload_request reload_by_signal;

/*
 * reload_start(r, request) / reload_return(r):
 * Begin to load the file / begin to restore the previous configuration. Only if no reload is under
 * way.
 */
void reload_start(struct reload *r, const struct reload_request *request);
void reload_return(struct reload *r);

/* reload_applied(r, rc): the control loop has changed the server of ${r}, a struct reload. */
void reload_applied(void *r, int rc);

/* reload_edits_finish(r): use or forget the edits of the batch, by ${r}->rc. */
void reload_edits_finish(struct reload *r);

/*
 * reload_forget_confirmed(r):
 * Free the previous configuration: the running one needs no confirmation now.
 */
void reload_forget_confirmed(struct reload *r);

/*
 * reload_answer(r, error, lines) / reload_answer_changes(r):
 * Answer the request under way, if any / answer it with the changes.
 */
void reload_answer(struct reload *r, const char *error, const char *lines);
void reload_answer_changes(struct reload *r);

#endif
