/*
 * upgrade/upgrade: another process replaces this one, without refusing or losing a client.
 *
 *   SERVING --upgrade_begin()--> STARTING --"taken" received--> REPLACED: this process drains
 *                                    \--it ended or hangs, upgrade_cancel()--> SERVING
 *
 * The new process is PENDING until the old one lets it take over; meanwhile both accept from the
 * same sockets. upgrade/hand_over has the messages.
 */
#ifndef UPGRADE_UPGRADE_H
#define UPGRADE_UPGRADE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "upgrade/upgrade_conf.h"

struct handoff_figures;
struct upgrade;

#define UPGRADE_FAILURE_BYTES 256

enum upgrade_event {
    UPGRADE_NOTHING,
    UPGRADE_FAILED,     /* logged; this process goes on serving */
    UPGRADE_REPLACED,   /* the successor has taken over: leave the sockets to it, and drain */
    UPGRADE_TOOK_OVER,  /* this process has replaced its starter */
    UPGRADE_TOLD_DRAIN, /* order of the successor: act as on SIGTERM */
    UPGRADE_TOLD_STOP,  /* order of the successor: act as on SIGINT */
    UPGRADE_OLD_ENDED   /* a replaced process has ended */
};

/*
 * upgrade_create(out, conf):
 * Create the state, without an upgrade under way.
 *
 * Owns:   what ${conf} points at must outlive ${out}
 * Errors: 0; -ENOMEM, -EMFILE, -ENFILE
 */
int upgrade_create(struct upgrade **out, const struct upgrade_conf *conf) NODISCARD;

/*
 * upgrade_fd(u) / upgrade_step(u):
 * Descriptor that is readable when upgrade_step() has work / do it, and return what happened.
 */
int upgrade_fd(const struct upgrade *u);
enum upgrade_event upgrade_step(struct upgrade *u) NODISCARD;

/*
 * upgrade_begin(u, timeout_ns, max_old):
 * Start the program again, from its path; the new process must take over within ${timeout_ns}.
 * Refused, and logged, for example while ${max_old} replaced processes drain.
 *
 * Errors: 0; -errno, see upgrade_failure()
 */
int upgrade_begin(struct upgrade *u, int64_t timeout_ns, unsigned max_old);

/* upgrade_failure(u): why the last upgrade was refused or failed. */
const char *upgrade_failure(const struct upgrade *u);

/*
 * upgrade_cancel(u, why):
 * Kill the process that is being started, if any, and end a hand-off of sessions. Call it before
 * server_stop().
 */
void upgrade_cancel(struct upgrade *u, const char *why);

/*
 * upgrade_is_starting(u) / upgrade_is_pending(u) / upgrade_is_replaced(u):
 * Is a process being started to replace this one? / Is this process still to replace its starter? /
 * Has another process replaced this one?
 */
bool upgrade_is_starting(const struct upgrade *u);
bool upgrade_is_pending(const struct upgrade *u);
bool upgrade_is_replaced(const struct upgrade *u);

/*
 * upgrade_leave(u):
 * After UPGRADE_REPLACED: leave the listen sockets to the new process, offer it the open sessions,
 * and then drain.
 */
void upgrade_leave(struct upgrade *u);

/*
 * upgrade_old(u) / upgrade_tell_old(u, word):
 * Number of replaced processes that drain / send "drain" or "stop" to these processes.
 */
unsigned upgrade_old(const struct upgrade *u);
void upgrade_tell_old(struct upgrade *u, const char *word);

/*
 * upgrade_handoff(u, out) / upgrade_log_stats(u):
 * As session_handoff_figures() / log these figures, if there are any.
 */
void upgrade_handoff(const struct upgrade *u, struct handoff_figures *out);
void upgrade_log_stats(const struct upgrade *u);

/*
 * upgrade_report(u, word):
 * If this process was replaced, send its state to the new process, as "state" or, the last time,
 * "end".
 */
void upgrade_report(struct upgrade *u, const char *word);

/* upgrade_destroy(u): free ${u}; NULL is allowed. Draining processes go on. */
void upgrade_destroy(struct upgrade *u);

#endif
