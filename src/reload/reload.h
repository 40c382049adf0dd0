/*
 * reload/reload: reads the configuration again and applies it while clients are served.
 *
 *   IDLE --reload_begin()--> LOADING (executor) --> APPLYING (control loop) --> IDLE
 *                                  \--refused, nothing is changed--> IDLE
 *
 * If reloads are requested during a reload, one more follows. With `reload_confirm`, the previous
 * configuration is restored unless the reload is confirmed in time: by SIGHUP with the same file,
 * or by reactorctl (RFC 6241, 8.4).
 */
#ifndef RELOAD_RELOAD_H
#define RELOAD_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct config;
struct process;
struct reload;

#define RELOAD_CONFIRM_AS_CONFIGURED (-1)

/* A reload, and the function for its result. */
struct reload_request {
    bool dry_run;       /* only check the file, and list the changes */
    int64_t confirm_ns; /* time to confirm, instead of `reload_confirm`; 0: none */
    /*
     * Called once, unless reload_drop_request() comes first. On success ${error} is NULL, and
     * ${lines} are the changes. Else ${error} is the reason, and ${lines} are the problems.
     * ${lines} NULL: none.
     */
    void (*done)(void *cookie, const char *error, const char *lines);
    void *cookie;
};

struct reload_status {
    bool is_applying;
    bool is_refused; /* the last reload was */
    unsigned n_done, n_failed;
    unsigned n_reverted;   /* how often the previous configuration was restored */
    int64_t confirm_by_ns; /* CLOCK_NEVER: nothing to confirm */
    unsigned n_edits;      /* servers that an administrator added or removed */
};

/*
 * reload_create(out, p, running):
 * Create the state for ${p}, which runs with ${running}.
 *
 * Owns:   on 0 ${out} owns ${running}; ${p} must outlive ${out}
 * Errors: 0; -ENOMEM, -EMFILE, -ENFILE
 */
int reload_create(struct reload **out, struct process *p, struct config *running) NODISCARD;

/*
 * reload_running(r):
 * The configuration in use.
 *
 * Owns:   valid until the next reload_step()
 */
const struct config *reload_running(const struct reload *r);

/*
 * reload_notify_ready(r):
 * Report to systemd that the server accepts, with its number of addresses.
 */
void reload_notify_ready(const struct reload *r);

/* reload_begin(r): begin a reload, now or after the reload under way. Failures are logged. */
void reload_begin(struct reload *r);

/*
 * reload_begin_request(r, request) / reload_drop_request(r):
 * Begin the reload ${request} / do not call its done() any more.
 *
 * Owns:   ${request} is copied
 * Errors: 0; -EBUSY (a reload is under way)
 */
int reload_begin_request(struct reload *r, const struct reload_request *request) NODISCARD;
void reload_drop_request(struct reload *r);

/*
 * reload_confirm(r) / reload_revert(r, request):
 * Confirm the new configuration / restore the previous one, then call done() of ${request}.
 *
 * Errors: 0; -ENOENT (nothing waits); -EBUSY (a reload is under way)
 */
int reload_confirm(struct reload *r) NODISCARD;
int reload_revert(struct reload *r, const struct reload_request *request) NODISCARD;

/* reload_status(r, out): copy the state of reloads to ${out}. */
void reload_status(const struct reload *r, struct reload_status *out);

/*
 * reload_fd(r) / reload_step(r):
 * Descriptor that is readable when reload_step() has work / go on with the reload.
 */
int reload_fd(const struct reload *r);
void reload_step(struct reload *r);

/*
 * reload_due_at_ns(r) / reload_look(r):
 * When to call reload_look(); CLOCK_NEVER: not at all / restore the previous configuration if the
 * time to confirm is over.
 */
int64_t reload_due_at_ns(const struct reload *r);
void reload_look(struct reload *r);

/* reload_is_open(r): is a reload under way, or not yet confirmed? */
bool reload_is_open(const struct reload *r);

/*
 * reload_is_applying(r) / reload_give_up(r):
 * Is the control loop changing the server, so that no other thread may? / The server is to stop:
 * cancel the reload, unless its commit has begun, and begin no other.
 */
bool reload_is_applying(const struct reload *r);
void reload_give_up(struct reload *r);

/*
 * reload_destroy(r):
 * Free ${r}, or NULL, and return the configuration in use.
 *
 * Thread: main, after the server has stopped
 * Owns:   the caller owns the result
 */
struct config *reload_destroy(struct reload *r);

#endif
