#include "system/file_watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "ini/ini_include.h"

/* As many links as the kernel follows. */
#define FILE_WATCH_LINKS 40

/* Names that come and go in a directory; in the last one, files that are being written, too. */
#define FILE_WATCH_NAMES                                                                   \
    (IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | \
     IN_ONLYDIR)
#define FILE_WATCH_WRITES (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB)

/* `*`: any `*.ini`; empty: the watched object itself. */
struct watched {
    int wd;
    char *name;
};

struct watched_list {
    struct watched *list;
    size_t n, capacity;
};

struct file_watch {
    int fd;
    struct watched_list now;
};

/* A path that is being followed. */
struct walk {
    struct file_watch *watch;
    struct watched_list *to;
    struct file_watch_problem *problem;
    char dir[PATH_MAX];  /* without links; empty: the root */
    char todo[PATH_MAX]; /* the components that follow */
    unsigned n_links;
};

static void file_watch_free_list(struct watched_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->list[i].name);
    free(l->list);
}

static bool file_watch_has(const struct watched_list *l, int wd, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].wd == wd && strcmp(l->list[i].name, name) == 0)
            return true;
    return false;
}

static int file_watch_append(struct watched_list *l, int wd, const char *name)
{
    size_t capacity = l->capacity > 0 ? 2 * l->capacity : 64;
    struct watched *larger;
    char *copy;

    if (file_watch_has(l, wd, name))
        return 0;
    if (l->n == l->capacity) {
        larger = realloc(l->list, capacity * sizeof(*larger));
        if (!larger)
            return -ENOMEM;
        l->list = larger;
        l->capacity = capacity;
    }
    copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    l->list[l->n++] = (struct watched){wd, copy};
    return 0;
}

/* Watch ${name} in the directory ${path}, or ${path} itself. */
static void file_watch_add(const struct walk *walk, const char *path, const char *name,
                           uint32_t mask)
{
    int wd = inotify_add_watch(walk->watch->fd, path, mask | IN_MASK_ADD);
    int rc = wd < 0 ? -errno : file_watch_append(walk->to, wd, name);

    if (rc == 0 || rc == -ENOENT || rc == -ENOTDIR || rc == -ELOOP || walk->problem->rc < 0)
        return;
    walk->problem->rc = rc;
    snprintf(walk->problem->path, sizeof(walk->problem->path), "%s", path);
}

/* Put what the link ${path} points at before the components that follow; false: no link. */
static bool file_watch_follow(struct walk *walk, const char *path)
{
    char target[PATH_MAX], rest[PATH_MAX];
    ssize_t len = readlink(path, target, sizeof(target) - 1);

    if (len < 0 || ++walk->n_links > FILE_WATCH_LINKS)
        return false;
    target[len] = '\0';
    memcpy(rest, walk->todo, sizeof(rest));
    if (snprintf(walk->todo, sizeof(walk->todo), "%s/%s", target, rest) >= (int)sizeof(walk->todo))
        return false;
    if (target[0] == '/')
        walk->dir[0] = '\0';
    return true;
}

/* Take the next component; false: none is left. */
static bool file_watch_next(struct walk *walk, char name[NAME_MAX + 1])
{
    size_t skip = strspn(walk->todo, "/"), len = strcspn(walk->todo + skip, "/");

    if (len == 0 || len > NAME_MAX)
        return false;
    memcpy(name, walk->todo + skip, len);
    name[len] = '\0';
    memmove(walk->todo, walk->todo + skip + len, strlen(walk->todo + skip + len) + 1);
    return true;
}

static void file_watch_step(struct walk *walk, const char *name)
{
    bool is_last = walk->todo[strspn(walk->todo, "/")] == '\0';
    char path[PATH_MAX + NAME_MAX + 2];
    char *slash = strrchr(walk->dir, '/');

    if (strcmp(name, ".") == 0)
        return;
    if (strcmp(name, "..") == 0) {
        if (slash)
            *slash = '\0';
        return;
    }
    file_watch_add(walk, walk->dir[0] != '\0' ? walk->dir : "/", name,
                   FILE_WATCH_NAMES | (is_last ? FILE_WATCH_WRITES : 0));
    snprintf(path, sizeof(path), "%s/%s", walk->dir, name);
    if (!file_watch_follow(walk, path))
        snprintf(walk->dir, sizeof(walk->dir), "%.*s", (int)sizeof(walk->dir) - 1, path);
}

static void file_watch_add_path(struct walk *walk, const char *path)
{
    bool is_directory = path[0] != '\0' && path[strlen(path) - 1] == '/';
    char name[NAME_MAX + 1];

    walk->n_links = 0;
    walk->dir[0] = '\0';
    if (path[0] != '/' && !getcwd(walk->dir, sizeof(walk->dir)))
        return;
    if (strcmp(walk->dir, "/") == 0)
        walk->dir[0] = '\0';
    snprintf(walk->todo, sizeof(walk->todo), "%s", path);
    while (file_watch_next(walk, name))
        file_watch_step(walk, name);
    if (is_directory)
        file_watch_add(walk, walk->dir[0] != '\0' ? walk->dir : "/", "*",
                       FILE_WATCH_NAMES | FILE_WATCH_WRITES);
    else
        file_watch_add(walk, walk->dir, "", FILE_WATCH_WRITES);
}

int file_watch_open(struct file_watch **out)
{
    struct file_watch *w = calloc(1, sizeof(*w));
    int rc;

    if (!w)
        return -ENOMEM;
    w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->fd < 0) {
        rc = -errno;
        free(w);
        return rc;
    }
    *out = w;
    return 0;
}

static bool file_watch_has_wd(const struct watched_list *l, int wd)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].wd == wd)
            return true;
    return false;
}

/* Are all of ${a} in ${b}? */
static bool file_watch_within(const struct watched_list *a, const struct watched_list *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (!file_watch_has(b, a->list[i].wd, a->list[i].name))
            return false;
    return true;
}

bool file_watch_set(struct file_watch *w, const char *paths, size_t len,
                    struct file_watch_problem *problem)
{
    struct watched_list before = w->now;
    struct walk walk = {.watch = w, .to = &w->now, .problem = problem};
    bool changed;

    *problem = (struct file_watch_problem){.rc = 0};
    w->now = (struct watched_list){.n = 0};
    for (const char *path = paths; path < paths + len; path += strlen(path) + 1)
        file_watch_add_path(&walk, path);
    for (size_t i = 0; i < before.n; i++)
        if (!file_watch_has_wd(&w->now, before.list[i].wd))
            (void)inotify_rm_watch(w->fd, before.list[i].wd); /* or gone with its file */
    changed = !file_watch_within(&w->now, &before);
    file_watch_free_list(&before);
    return changed;
}

int file_watch_fd(const struct file_watch *w)
{
    return w->fd;
}

static bool file_watch_concerns(const struct file_watch *w, const struct inotify_event *event)
{
    const char *name = event->len > 0 ? event->name : "";

    if ((event->mask & IN_Q_OVERFLOW) != 0)
        return true;
    if (name[0] == '\0')
        return file_watch_has_wd(&w->now, event->wd); /* of the directory or file itself */
    return file_watch_has(&w->now, event->wd, name) ||
           (ini_include_takes(name) && file_watch_has(&w->now, event->wd, "*"));
}

bool file_watch_read(struct file_watch *w)
{
    _Alignas(struct inotify_event) char events[16384];
    bool found = false;
    ssize_t n;

    while ((n = read(w->fd, events, sizeof(events))) > 0) {
        for (const char *at = events; at < events + n;) {
            const struct inotify_event *event = (const void *)at;

            found = file_watch_concerns(w, event) || found;
            at += sizeof(*event) + event->len;
        }
    }
    return found;
}

void file_watch_close(struct file_watch *w)
{
    if (!w)
        return;
    file_watch_free_list(&w->now);
    close(w->fd);
    free(w);
}
