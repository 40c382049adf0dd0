#include "reload/config_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/config.h"
#include "system/file_watch.h"
#include "reload/reload.h"
#include "ini/ini_include.h"

int config_watch_fd(const struct config_watch *w)
{
    return w->files ? file_watch_fd(w->files) : -1;
}

int64_t config_watch_due_at_ns(const struct config_watch *w)
{
    return w->is_started ? w->look_at_ns : 0;
}

void config_watch_close(struct config_watch *w)
{
    file_watch_close(w->files);
    w->files = NULL;
    w->look_at_ns = CLOCK_NEVER;
}

static const char *config_watch_hint(int rc)
{
    if (rc == -ENOSPC)
        return " (sysctl fs.inotify.max_user_watches)";
    return rc == -EMFILE ? " (sysctl fs.inotify.max_user_instances)" : "";
}

static void config_watch_open(struct config_watch *w)
{
    int rc = file_watch_open(&w->files);

    w->look_at_ns = 0;
    w->problem = 0;
    if (rc == 0)
        return;
    w->files = NULL;
    w->look_at_ns = CLOCK_NEVER;
    log_warning("watch: inotify cannot be used: %s%s; changed files are not seen until the next "
                "reload",
                strerror(-rc), config_watch_hint(rc));
}

/* Log a problem once, until it is over. */
static void config_watch_report(struct config_watch *w, const struct file_watch_problem *problem)
{
    if (problem->rc < 0 && problem->rc != w->problem)
        log_warning("watch: %s cannot be watched: %s%s; changes there are not seen", problem->path,
                    strerror(-problem->rc), config_watch_hint(problem->rc));
    w->problem = problem->rc;
}

/* Read the files and watch them; true: they are not those in use. */
static bool config_watch_look(struct config_watch *w, const struct reload *reload)
{
    struct file_watch_problem problem;
    struct reload_status status;
    struct ini_include_files files;
    uint64_t seen = w->seen;

    w->look_at_ns = CLOCK_NEVER;
    if (ini_include_list(&files, w->path) < 0) {
        w->look_at_ns = clock_add_ns(clock_now_ns(), CONFIG_WATCH_QUIET_NS); /* no memory */
        return false;
    }
    if (file_watch_set(w->files, files.paths, files.len, &problem))
        w->look_at_ns = clock_add_ns(clock_now_ns(), CONFIG_WATCH_QUIET_NS);
    config_watch_report(w, &problem);
    free(files.paths);
    w->seen = files.digest;
    reload_status(reload, &status);
    if (files.digest == seen ||
        (files.digest == config_digest(reload_running(reload)) && !status.is_refused))
        return false;
    log_event(LOG_RELOAD, LOG_LEVEL_NOTICE, "watch: the files of the configuration have changed");
    return true;
}

static void config_watch_start(struct config_watch *w, const struct reload *reload)
{
    w->is_started = true;
    w->seen = config_digest(reload_running(reload));
    w->look_at_ns = CLOCK_NEVER;
    if (reload_running(reload)->process.watch)
        config_watch_open(w);
}

bool config_watch_step(struct config_watch *w, const struct reload *reload, bool can_reload)
{
    struct reload_status status;

    reload_status(reload, &status);
    if (!w->is_started)
        config_watch_start(w, reload);
    if (!reload_running(reload)->process.watch) {
        config_watch_close(w);
        w->n_reloads = status.n_done;
        return false;
    }
    if (status.n_done != w->n_reloads) {
        w->n_reloads = status.n_done;
        w->look_at_ns = 0; /* it may have other files */
        if (!w->files)
            config_watch_open(w);
    }
    if (w->files && file_watch_read(w->files))
        w->look_at_ns = clock_add_ns(clock_now_ns(), CONFIG_WATCH_QUIET_NS);
    if (!w->files || clock_now_ns() < w->look_at_ns)
        return false;
    if (!can_reload || status.is_applying) {
        w->look_at_ns = clock_add_ns(clock_now_ns(), CONFIG_WATCH_QUIET_NS);
        return false;
    }
    return config_watch_look(w, reload);
}
