/*
 * reload/config_watch: asks for a reload when the files of the configuration have changed
 * (`watch`).
 *
 * An event only leads to a look, when the files have been quiet for CONFIG_WATCH_QUIET_NS: their
 * bytes are read and compared with those of the last look. So a file that is touched, or written
 * again with the same content, reloads nothing, and a bad file is refused once.
 */
#ifndef RELOAD_CONFIG_WATCH_H
#define RELOAD_CONFIG_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct file_watch;
struct reload;

#define CONFIG_WATCH_QUIET_NS (1 * NS_PER_S)

struct config_watch {
    const char *path;         /* of the main file */
    struct file_watch *files; /* NULL: off, or not possible */
    bool is_started;
    uint64_t seen;      /* digest of the files at the last look */
    unsigned n_reloads; /* that were done by the last step */
    int64_t look_at_ns; /* CLOCK_NEVER: nothing has changed */
    int problem;        /* the last one that was logged */
};

/* config_watch_fd(w): descriptor to poll(2) for config_watch_step(); -1: none. */
int config_watch_fd(const struct config_watch *w);

/* config_watch_due_at_ns(w): when to call config_watch_step(), at the latest. */
int64_t config_watch_due_at_ns(const struct config_watch *w);

/*
 * config_watch_step(w, reload, can_reload):
 * Watch as the running configuration says. Return whether a reload shall begin, never if not
 * ${can_reload}: then it is put off.
 */
bool config_watch_step(struct config_watch *w, const struct reload *reload, bool can_reload);

/* config_watch_close(w): close what ${w} has open. */
void config_watch_close(struct config_watch *w);

#endif
