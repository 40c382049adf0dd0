/*
 * daemon/reload_internal: struct reload, for daemon/reload.c and daemon/reload_request.c.
 */
#ifndef DAEMON_RELOAD_INTERNAL_H
#define DAEMON_RELOAD_INTERNAL_H

#include "daemon/reload.h"
#include "engine/task.h"

struct access_logs_change;
struct config_compare;

enum reload_state { RELOAD_IDLE, RELOAD_LOADING, RELOAD_APPLYING };

struct reload {
    struct reload_conf conf;
    struct config *running;
    enum reload_state state;
    bool again; /* another reload was requested meanwhile */
    /* previous configuration, until the new one is confirmed; NULL: none */
    struct config *confirmed;
    int64_t confirm_by_ns;         /* CLOCK_NEVER: nothing to confirm */
    bool is_retry;                 /* at `confirm_by_ns` the restore is tried again */
    bool returning;                /* `next` is the previous configuration */
    bool given_up;                 /* reload_give_up() was called */
    bool refused;                  /* the last reload was refused */
    struct reload_request request; /* of the reload under way */
    unsigned n_done, n_failed;
    int step_fd;
    struct task load;
    /* The executor or the control loop writes these members before it writes to `step_fd`. */
    int rc;
    struct config *next;
    char *problems; /* lines of config_reload() */
    size_t problems_len;
    struct config_compare *changes;
    struct access_logs_change *access_logs;
};

/* Request for SIGHUP, which asks for no answer. */
extern const struct reload_request reload_by_signal;

/*
 * reload_start(r, request) / reload_return(r):
 * Begin to load the file / begin to restore the previous configuration; no reload is under way.
 *
 * Thread: main
 */
void reload_start(struct reload *r, const struct reload_request *request);
void reload_return(struct reload *r);

/*
 * reload_forget_confirmed(r):
 * Free the previous configuration: there is nothing to confirm any more.
 *
 * Thread: main
 */
void reload_forget_confirmed(struct reload *r);

/*
 * reload_answer(r, error, lines) / reload_answer_changes(r):
 * Answer the request under way, if any / answer it with the changes.
 *
 * Thread: main
 */
void reload_answer(struct reload *r, const char *error, const char *lines);
void reload_answer_changes(struct reload *r);

#endif
