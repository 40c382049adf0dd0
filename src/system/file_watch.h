/*
 * system/file_watch: tells when files may have changed, by inotify(7).
 *
 * For each path it watches the file, and for each component of its path the directory that contains
 * it, links included: so a file that is replaced by rename(2), a directory that is, and a symbolic
 * link on the way are seen, such as `..data` of a Kubernetes ConfigMap. It says "look again", not
 * what has changed.
 */
#ifndef SYSTEM_FILE_WATCH_H
#define SYSTEM_FILE_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

struct file_watch;

/*
 * file_watch_open(out):
 * Create an empty watch.
 *
 * Owns:   the caller calls file_watch_close()
 * Errors: 0; -ENOMEM; -ENOSYS, -EMFILE, -ENFILE (see inotify_init(2))
 */
int file_watch_open(struct file_watch **out) NODISCARD;

/* The first path that could not be watched. */
struct file_watch_problem {
    int rc; /* 0: none */
    char path[256];
};

/*
 * file_watch_set(w, paths, len, problem):
 * Watch ${paths}, and no others: texts that end in NUL, ${len} bytes in total. One that ends in `/`
 * is a directory, of which all `*.ini` are watched. What is not there is watched for its coming.
 * Return whether something else than before is watched, so that a change may have been missed.
 */
bool file_watch_set(struct file_watch *w, const char *paths, size_t len,
                    struct file_watch_problem *problem);

/* file_watch_fd(w): descriptor that is readable when file_watch_read() has work. */
int file_watch_fd(const struct file_watch *w);

/* file_watch_read(w): take all events; true: a path may have changed. */
bool file_watch_read(struct file_watch *w);

/* file_watch_close(w): free ${w} or NULL. */
void file_watch_close(struct file_watch *w);

#endif
