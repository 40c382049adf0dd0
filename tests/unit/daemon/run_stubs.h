/* daemon/run_stubs: the modules below daemon/run, as the tests of daemon/run need them. */
#ifndef UNIT_DAEMON_RUN_STUBS_H
#define UNIT_DAEMON_RUN_STUBS_H

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "config/config.h"
#include "daemon/admin_desk.h"
#include "reload/config_watch.h"
#include "system/notify.h"
#include "reload/reload.h"
#include "reload/reload_edits.h"
#include "daemon/run.h"
#include "upgrade/upgrade.h"
#include "handover/server_upgrade.h"
#include "server/server_figures.h"
#include "support/log_lines.h"
#include "support/manager.h"

/*
 * The server of these tests counts what it is asked for, and does what a test wants in the middle
 * of it.
 */
static struct {
    struct server_events events;
    void (*on_drain)(void);
    void (*on_leave)(void);
    void (*on_watch)(void);
    void (*on_look)(void); /* at a reload to be confirmed */
    int stop_rc;
    int64_t watch_interval_ns;
    int first_wait_ms; /* of poll(2) */
    unsigned polls;
    unsigned drains, leaves, keeps, stops, watches, stats;
} server;

void server_drain(struct server *sv)
{
    (void)sv;
    server.drains++;
    if (server.on_drain)
        server.on_drain();
}

int server_stop(struct server *sv, unsigned *cut)
{
    (void)sv;
    server.stops++;
    *cut = 7;
    return server.stop_rc;
}

void server_upgrade_leave(struct server *sv)
{
    (void)sv;
    server.leaves++;
    if (server.on_leave)
        server.on_leave();
}

void server_upgrade_keep(struct server *sv)
{
    (void)sv;
    server.keeps++;
}

bool server_watch(struct server *sv)
{
    (void)sv;
    server.watches++;
    if (server.on_watch)
        server.on_watch();
    return true;
}

int64_t server_watch_interval_ns(const struct server *sv)
{
    (void)sv;
    return server.watch_interval_ns;
}

bool server_doze(struct server *sv)
{
    (void)sv;
    return false;
}

int server_watch_fd(const struct server *sv)
{
    (void)sv;
    return -1;
}

void server_figures_log(struct server *sv)
{
    (void)sv;
    server.stats++;
}

unsigned server_sessions(const struct server *sv)
{
    (void)sv;
    return 7;
}

/* The reload of these tests, likewise. */
static struct {
    struct config running;
    int fd;
    bool applying, open;
    int64_t due_at_ns;
    unsigned begun, given_up, steps, looks, notified;
} changes;

const struct config *reload_running(const struct reload *r)
{
    (void)r;
    return &changes.running;
}

void reload_begin(struct reload *r)
{
    (void)r;
    changes.begun++;
}

int reload_fd(const struct reload *r)
{
    (void)r;
    return changes.fd;
}

void reload_step(struct reload *r)
{
    eventfd_t n;

    (void)r;
    ck_assert_int_eq(eventfd_read(changes.fd, &n), 0);
    changes.steps++;
    changes.applying = false;
}

bool reload_is_applying(const struct reload *r)
{
    (void)r;
    return changes.applying;
}

int64_t reload_due_at_ns(const struct reload *r)
{
    (void)r;
    return changes.due_at_ns;
}

void reload_look(struct reload *r)
{
    (void)r;
    changes.looks += clock_now_ns() >= changes.due_at_ns;
    if (server.on_look)
        server.on_look();
}

/* No test changes files. */
int config_watch_fd(const struct config_watch *w)
{
    (void)w;
    return -1;
}

int64_t config_watch_due_at_ns(const struct config_watch *w)
{
    (void)w;
    return CLOCK_NEVER;
}

bool config_watch_step(struct config_watch *w, const struct reload *reload, bool can_reload)
{
    (void)w;
    (void)reload;
    (void)can_reload;
    return false;
}

void config_watch_close(struct config_watch *w)
{
    (void)w;
}

bool reload_edits_are_open(const struct reload *r)
{
    (void)r;
    return false;
}

bool reload_edits_are_applied(const struct reload *r)
{
    return reload_edits_are_open(r) && reload_is_applying(r);
}

void reload_give_up(struct reload *r)
{
    (void)r;
    changes.given_up++;
}

bool reload_is_open(const struct reload *r)
{
    (void)r;
    return changes.open;
}

void reload_notify_ready(const struct reload *r)
{
    (void)r;
    changes.notified++;
}

/* The upgrade of these tests, likewise. */
static struct {
    int fd;
    enum upgrade_event event; /* of the next step */
    bool starting, pending, replaced;
    unsigned begun, cancelled, old, max_old;
    int64_t timeout_ns;
    const char *last_report;
} upgrade;

int upgrade_fd(const struct upgrade *u)
{
    (void)u;
    return upgrade.fd;
}

enum upgrade_event upgrade_step(struct upgrade *u)
{
    eventfd_t n;

    (void)u;
    ck_assert_int_eq(eventfd_read(upgrade.fd, &n), 0);
    upgrade.replaced |= upgrade.event == UPGRADE_REPLACED;
    if (upgrade.event == UPGRADE_TOOK_OVER) {
        notify_set_main(true); /* as the real one */
        upgrade.pending = false;
    }
    return upgrade.event;
}

int upgrade_begin(struct upgrade *u, int64_t timeout_ns, unsigned max_old)
{
    (void)u;
    upgrade.begun++;
    upgrade.timeout_ns = timeout_ns;
    upgrade.max_old = max_old;
    return 0;
}

void upgrade_cancel(struct upgrade *u, const char *why)
{
    (void)u;
    (void)why;
    upgrade.cancelled++;
}

bool upgrade_is_starting(const struct upgrade *u)
{
    (void)u;
    return upgrade.starting;
}

bool upgrade_is_pending(const struct upgrade *u)
{
    (void)u;
    return upgrade.pending;
}

bool upgrade_is_replaced(const struct upgrade *u)
{
    (void)u;
    return upgrade.replaced;
}

unsigned upgrade_old(const struct upgrade *u)
{
    (void)u;
    return upgrade.old;
}

void upgrade_handoff(const struct upgrade *u, struct handoff_figures *out)
{
    (void)u;
    *out = (struct handoff_figures){.moved = 0};
}

void upgrade_log_stats(const struct upgrade *u)
{
    (void)u;
}

void upgrade_tell_old(struct upgrade *u, const char *word)
{
    (void)u;
    (void)word;
}

/* Without a hand-off of sessions. */
void upgrade_leave(struct upgrade *u)
{
    (void)u;
    server_upgrade_leave(NULL);
}

void upgrade_report(struct upgrade *u, const char *word)
{
    (void)u;
    if (upgrade.replaced)
        upgrade.last_report = word;
}

static struct run *run;

/* ---- the admin interface ---- */

static struct {
    unsigned started, left, stopped, steps;
    bool draining, closed;
    const char *obstacle; /* of the last step */
} admin;

int admin_start(struct admin *a)
{
    (void)a;
    admin.started++;
    return 0;
}

void admin_set_state(struct admin *a, enum admin_state state)
{
    (void)a;
    admin.draining = state == ADMIN_DRAINING;
}

void admin_leave(struct admin *a)
{
    (void)a;
    admin.left++;
}

int admin_stop(struct admin *a)
{
    (void)a;
    ck_assert(admin.closed); /* no action is out */
    admin.stopped++;
    return 0;
}

int admin_desk_fd(const struct admin_desk *desk)
{
    (void)desk;
    return -1;
}

void admin_desk_step(struct admin_desk *desk, const char *obstacle)
{
    (void)desk;
    admin.steps++;
    admin.obstacle = obstacle;
}

void admin_desk_close(struct admin_desk *desk)
{
    (void)desk;
    admin.closed = true;
}

static struct run_conf conf;
static bool alone;

static inline void setup(void)
{
    manager_open();
    log_lines_capture(LOG_LEVEL_NOTICE);
    memset(&server, 0, sizeof(server));
    server.watch_interval_ns = 2 * NS_PER_MS;
    memset(&changes, 0, sizeof(changes));
    changes.due_at_ns = CLOCK_NEVER;
    changes.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ck_assert_int_ge(changes.fd, 0);
    memset(&upgrade, 0, sizeof(upgrade));
    memset(&admin, 0, sizeof(admin));
    upgrade.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ck_assert_int_ge(upgrade.fd, 0);
    ck_assert_int_eq(run_create(&run), 0);
    server.events = run_events(run);
}

static inline void teardown(void)
{
    run_destroy(run);
    close(changes.fd);
    close(upgrade.fd);
    manager_close();
}

/* In place of libc's. A wait without end is ended by a signal, so that a test ends. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = timeout_ms % 1000 * NS_PER_MS};

    if (server.polls++ == 0) {
        server.first_wait_ms = timeout_ms;
        if (timeout_ms < 0 || server.watch_interval_ns == CLOCK_NEVER)
            ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    }
    return ppoll(fds, n, timeout_ms < 0 ? NULL : &timeout, NULL);
}

static inline void last_session_ends(void)
{
    server.on_watch = NULL;
    server.events.drained(server.events.cookie);
}

static inline void send_signal(int number)
{
    ck_assert_int_eq(kill(getpid(), number), 0);
}

/* Has the manager been told ${line} since this was asked last? */
static inline bool told(const char *line)
{
    const char *message;
    bool found = false;

    while (*(message = manager_received()) != '\0')
        found |= strncmp(message, line, strlen(line)) == 0;
    return found;
}

#endif
