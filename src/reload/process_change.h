/*
 * reload/process_change: uses a configuration in all parts of the process. The start of the process
 * is a reload from nothing.
 *
 *   prepare each part -> [the server reloads] -> prepare the rest -> commit all
 *                    \-> cancel what was prepared
 *
 * Only prepare can fail, and changes nothing. Parts are prepared and committed in the order of
 * process_steps, and cancelled in the reverse order.
 */
#ifndef RELOAD_PROCESS_CHANGE_H
#define RELOAD_PROCESS_CHANGE_H

#include "base/must.h"
#include "system/privileges.h"
#include "system/program.h"
#include "listen/listeners.h"
#include "listen/socket_store.h"

struct access_logs;
struct access_logs_change;
struct admin_desk;
struct config;
struct fd_store;
struct log_target;
struct pid_file;
struct predecessors;
struct reload;
struct run;
struct server;
struct upgrade;

struct process {
    /* before the start */
    const char *config_path;
    struct program program;
    struct predecessors *predecessors;
    char *notes; /* of daemon/start_edits; NULL: none */
    struct privileges privileges;
    /* parts; NULL: not open */
    struct run *run;
    struct log_target *log;
    struct fd_store *sockets;
    struct socket_store socket_store;
    struct access_logs *access_logs;
    struct pid_file *pid_file; /* NULL also without `pid_file` */
    struct server *server;
    struct admin_desk *desk;
    struct reload *reload;
    struct upgrade *upgrade;
};

enum process_phase { PROCESS_STARTS = 1, PROCESS_RELOADS = 2 };

struct process_change {
    struct process *process;
    enum process_phase phase;
    struct config *next;
    /* Called on the control loop after -EINPROGRESS, unless the server stops: see go_on(). */
    void (*done)(void *cookie, int rc);
    void *cookie;
    char why[LISTENERS_WHY_BYTES]; /* why prepare has failed; "": only the error says it */
    int rc;                        /* of a cancel: the error; 0: the process ends */
    struct access_logs_change *access_logs;
    unsigned n_prepared; /* steps done so far, or left out in this phase */
};

/* A part of the process. NULL: nothing to do. */
struct process_step {
    unsigned phases; /* in which it is prepared and cancelled; each change commits it */
    int (*prepare)(struct process_change *change); /* -EINPROGRESS: done() follows */
    void (*commit)(struct process_change *change);
    /* At a start: close the part, also after the commit. */
    void (*cancel)(struct process_change *change);
};

#define PROCESS_STEPS 11

extern const struct process_step process_steps[PROCESS_STEPS];

/*
 * process_change_begin(change) / process_change_go_on(change, rc):
 * Use `next` / go on after -EINPROGRESS, when done() was called with ${rc}.
 *
 * Owns:   `next` must live as long as it is in use
 * Errors: 0; -EINPROGRESS; as prepare() or ${rc}
 */
int process_change_begin(struct process_change *change) NODISCARD;
int process_change_go_on(struct process_change *change, int rc) NODISCARD;

/*
 * process_change_close(p, config, rc):
 * Close all parts of ${p}, which has started with ${config}. ${rc}: why the start fails; or 0.
 *
 * Thread: main, while no other thread runs
 */
void process_change_close(struct process *p, struct config *config, int rc);

#endif
