#include "reload/reload_internal.h"

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
#include "config/config_compare.h"
#include "config/config_edits.h"
#include "system/notify.h"
#include "engine/task.h"
#include "server/server.h"

/* So many of the lines of a reload are events. */
#define RELOAD_EVENTS 8

/* Pause after a failed attempt to restore the previous configuration. */
#define RELOAD_RETURN_NS (5 * NS_PER_S)

static void reload_wake(struct reload *r)
{
    (void)event_fd_signal(r->step_fd);
}

/* ---- executor ---- */

static int reload_load(struct reload *r)
{
    FILE *problems = open_memstream(&r->problems, &r->problems_len);
    int rc;

    if (!problems)
        return -ENOMEM;
    rc = config_reload(&r->next, r->process->config_path, r->running, problems);
    if (text_stream_close(problems, &r->problems) < 0 && rc == 0)
        rc = -ENOMEM;
    return rc;
}

static void reload_run_load(struct task *t)
{
    struct reload *r = CONTAINER_OF(t, struct reload, load);

    r->rc = reload_load(r);
    reload_wake(r);
}

static void reload_drop_load(struct task *t)
{
    struct reload *r = CONTAINER_OF(t, struct reload, load);

    r->rc = -ESHUTDOWN;
    reload_wake(r);
}

static const struct task_type reload_load_type = {
    .name = "read the configuration", .run = reload_run_load, .drop = reload_drop_load};

/* ---- control loop ---- */

void reload_applied(void *cookie, int rc)
{
    struct reload *r = cookie;

    r->rc = rc;
    reload_wake(r);
}

int reload_create(struct reload **out, struct process *p, struct config *running)
{
    struct reload *r = calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return -ENOMEM;
    r->process = p;
    r->load.type = &reload_load_type;
    r->step_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (r->step_fd < 0) {
        rc = -errno;
        free(r);
        return rc;
    }
    r->running = running;
    r->confirm_by_ns = CLOCK_NEVER;
    *out = r;
    return 0;
}

const struct config *reload_running(const struct reload *r)
{
    return r->running;
}

int reload_fd(const struct reload *r)
{
    return r->step_fd;
}

bool reload_is_open(const struct reload *r)
{
    return r->state != RELOAD_IDLE || r->confirm_by_ns != CLOCK_NEVER;
}

bool reload_is_applying(const struct reload *r)
{
    return r->state == RELOAD_APPLYING || r->state == RELOAD_EDITING;
}

static unsigned reload_addresses(const struct server_conf *conf)
{
    unsigned n = 0;

    for (unsigned i = 0; i < conf->n_listeners; i++)
        n += conf->listeners[i].n_addresses;
    return n;
}

void reload_notify_ready(const struct reload *r)
{
    notify_ready("Accepting, listen addresses: %u%s", reload_addresses(&r->running->server),
                 r->refused ? "; the last reload was refused, see the log" : "");
}

/* End the reload: free what it did not use, and begin the next reload, if requested. */
static void reload_end(struct reload *r)
{
    bool changed = !r->request.dry_run;

    r->request = reload_by_signal;
    config_compare_destroy(r->changes);
    r->changes = NULL;
    config_free(r->next);
    r->next = NULL;
    free(r->problems);
    r->problems = NULL;
    r->returning = false;
    r->state = RELOAD_IDLE;
    if (!r->given_up && changed)
        reload_notify_ready(r);
    if (!r->again)
        return;
    r->again = false;
    reload_begin(r);
}

static const char *reload_why(int rc)
{
    switch (rc) {
    case -EAGAIN: return "a thread cannot be started, or has too many tasks";
    case -ENODATA: return "a name has no address (resolve_required)";
    case -ECANCELED:
    case -ESHUTDOWN: return "draining";
    default: return strerror(-rc);
    }
}

static void reload_fail_to_return(struct reload *r, const char *why)
{
    log_event(LOG_RELOAD, LOG_LEVEL_ERROR,
              "reload: the previous configuration cannot be restored: %s; trying again in %g s",
              why, (double)RELOAD_RETURN_NS / NS_PER_S);
    r->confirmed = r->next;
    r->next = NULL;
    r->confirm_by_ns = clock_add_ns(clock_now_ns(), RELOAD_RETURN_NS);
    r->is_retry = true;
    r->n_failed++;
    reload_answer(r, why, NULL);
    reload_end(r);
}

static void reload_fail(struct reload *r, const char *why)
{
    if (r->returning && !r->given_up) {
        reload_fail_to_return(r, why);
        return;
    }
    if (!r->request.dry_run) {
        log_event(LOG_RELOAD, LOG_LEVEL_ERROR, "reload: refused: %s; nothing was changed", why);
        r->refused = true;
        r->n_failed++;
    }
    reload_answer(r, why, r->problems);
    reload_end(r);
}

void reload_start(struct reload *r, const struct reload_request *request)
{
    int rc;

    r->request = *request;
    if (!request->dry_run) {
        notify_reloading("Reloading");
        r->refused = false;
    }
    rc = server_submit_slow(r->process->server, &r->load);
    if (rc < 0) {
        reload_fail(r, reload_why(rc));
        return;
    }
    r->state = RELOAD_LOADING;
}

void reload_begin(struct reload *r)
{
    if (r->state != RELOAD_IDLE)
        r->again = true;
    else
        reload_start(r, &reload_by_signal);
}

static void reload_log_lines(enum log_level level, const char *lines)
{
    unsigned n = 0;

    for (const char *line = lines; *line != '\0'; line += strspn(line, "\n")) {
        int len = (int)strcspn(line, "\n");

        if (len > 0 && n++ < RELOAD_EVENTS)
            log_event(LOG_RELOAD, level, "reload: %.*s", len, line);
        else if (len > 0)
            log_write(level, "reload: %.*s", len, line);
        line += len;
    }
}

static void reload_log_changes(const struct reload *r)
{
    struct config_compare_text text;

    for (size_t i = 0; i < r->changes->n; i++) {
        const char *change = config_compare_text(&text, &r->changes->list[i]);

        if (i < RELOAD_EVENTS)
            log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "reload: %s", change);
        else
            log_notice("reload: %s", change);
    }
}

void reload_forget_confirmed(struct reload *r)
{
    config_free(r->confirmed);
    r->confirmed = NULL;
    r->confirm_by_ns = CLOCK_NEVER;
}

/* Keep the previous configuration (r->next) until the new one is confirmed. */
static void reload_expect_confirmation(struct reload *r)
{
    int64_t within_ns = r->request.confirm_ns != RELOAD_CONFIRM_AS_CONFIGURED
                            ? r->request.confirm_ns
                            : r->running->process.reload_confirm_ns;

    if (r->returning || within_ns == 0) {
        reload_forget_confirmed(r);
        return;
    }
    log_event(LOG_RELOAD, LOG_LEVEL_NOTICE,
              "reload: to confirm the new configuration send SIGHUP, or use reactorctl confirm, "
              "within %g s; otherwise the previous one is restored",
              (double)within_ns / NS_PER_S);
    if (!r->confirmed) {
        r->confirmed = r->next;
        r->next = NULL;
    }
    r->confirm_by_ns = clock_add_ns(clock_now_ns(), within_ns);
    r->is_retry = false;
}

/* ${rc}: result of the change; -EINPROGRESS: it goes on. */
static void reload_finish(struct reload *r, int rc)
{
    struct config *before = r->running;

    if (rc == -EINPROGRESS)
        return;
    if (rc < 0) {
        reload_fail(r, r->change.why[0] != '\0' ? r->change.why : reload_why(rc));
        return;
    }
    reload_log_changes(r);
    log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "reload: done%s; changes: %zu, open sessions: %u",
              r->returning ? ": the previous configuration is restored" : "", r->changes->n,
              server_sessions(r->process->server));
    r->n_done++;
    r->n_reverted += r->returning;
    reload_answer_changes(r);
    r->running = r->next;
    r->next = before;
    reload_expect_confirmation(r);
    reload_end(r);
}

static void reload_apply(struct reload *r)
{
    r->state = RELOAD_APPLYING;
    r->rc = -ECANCELED; /* if the server stops, done() is not called */
    r->change = (struct process_change){.process = r->process,
                                        .phase = PROCESS_RELOADS,
                                        .next = r->next,
                                        .done = reload_applied,
                                        .cookie = r};
    reload_finish(r, process_change_begin(&r->change));
}

static void reload_go_on(struct reload *r)
{
    reload_finish(r, process_change_go_on(&r->change, r->rc));
}

/* Let the edits of the running configuration apply to the next one, as far as they still can. */
static int reload_keep_edits(struct reload *r)
{
    char *notes = NULL;
    size_t size;
    FILE *f = open_memstream(&notes, &size);
    int rc = f ? config_edits_move(&r->next, r->running, f) : -ENOMEM;

    if (f && text_stream_close(f, &notes) < 0)
        rc = -ENOMEM;
    if (rc == 0 && !r->request.dry_run)
        reload_log_lines(LOG_LEVEL_NOTICE, notes);
    free(notes);
    return rc;
}

static void reload_loaded(struct reload *r)
{
    int rc = r->given_up ? -ECANCELED : r->rc;

    if (rc == 0)
        rc = reload_keep_edits(r);
    if (rc == 0)
        rc = config_compare_create(&r->changes, r->running, r->next);
    if (rc == 0 && r->request.dry_run) {
        reload_answer_changes(r);
        reload_end(r);
        return;
    }
    if (rc == 0 &&
        (r->changes->n > 0 || config_edits_count(r->next) != config_edits_count(r->running))) {
        reload_log_lines(LOG_LEVEL_WARNING, r->problems); /* only warnings */
        reload_apply(r);
        return;
    }
    if (rc == 0) {
        log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "reload: nothing has changed in %s%s",
                  r->process->config_path, r->confirmed ? "; its last change is confirmed" : "");
        reload_forget_confirmed(r);
        r->n_done++;
        reload_answer_changes(r);
        reload_end(r);
        return;
    }
    if (r->problems && !r->request.dry_run)
        reload_log_lines(LOG_LEVEL_ERROR, r->problems);
    reload_fail(r, rc == -EINVAL ? "the configuration is not valid" : reload_why(rc));
}

int64_t reload_due_at_ns(const struct reload *r)
{
    return r->state == RELOAD_IDLE ? r->confirm_by_ns : CLOCK_NEVER;
}

void reload_return(struct reload *r)
{
    int rc;

    r->next = r->confirmed;
    r->confirmed = NULL;
    r->confirm_by_ns = CLOCK_NEVER;
    r->returning = true;
    rc = reload_keep_edits(r);
    if (rc == 0)
        rc = config_compare_create(&r->changes, r->running, r->next);
    if (rc < 0)
        reload_fail(r, reload_why(rc));
    else
        reload_apply(r);
}

void reload_look(struct reload *r)
{
    if (clock_now_ns() < reload_due_at_ns(r))
        return;
    if (!r->is_retry)
        log_event(LOG_RELOAD, LOG_LEVEL_WARNING,
                  "reload: not confirmed in time: going back to the previous configuration");
    reload_return(r);
}

void reload_step(struct reload *r)
{
    eventfd_t n;

    if (eventfd_read(r->step_fd, &n) < 0)
        return;
    switch (r->state) {
    case RELOAD_LOADING: reload_loaded(r); break;
    case RELOAD_APPLYING: reload_go_on(r); break;
    case RELOAD_EDITING: reload_edits_finish(r); break;
    case RELOAD_IDLE: break;
    }
}

void reload_give_up(struct reload *r)
{
    r->again = false;
    r->given_up = true;
    if (reload_is_applying(r))
        server_reload_give_up(r->process->server);
}

struct config *reload_destroy(struct reload *r)
{
    struct config *running;

    if (!r)
        return NULL;
    r->again = false;
    if (r->state == RELOAD_APPLYING)
        reload_go_on(r);
    if (r->state == RELOAD_EDITING)
        reload_edits_finish(r);
    running = r->running;
    config_free(r->next); /* a configuration loaded while the server was stopping */
    config_free(r->confirmed);
    free(r->problems);
    close(r->step_fd);
    free(r);
    return running;
}
