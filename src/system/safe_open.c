/*
 * Root walks the path by directory descriptors, so that it uses the directories that were checked.
 */
#include "system/safe_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "system/privileges.h"

#define MAX_LINKS 40 /* the kernel's limit, path_resolution(7) */

struct walk {
    const struct safe_open *how;
    int dir; /* current directory; O_PATH */
    char rest[PATH_MAX];
    unsigned links;
};

/*
 * Is ${fd} in /proc? Users cannot create entries there, but links may lead to files without a path
 * (/dev/stdout).
 */
static bool safe_open_is_in_proc(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/*
 * Can the user replace any entry of ${w}->dir? Set *${sticky} if only the user's own entries, see
 * unlink(2).
 */
static bool safe_open_user_can_change(const struct walk *w, bool *sticky)
{
    uid_t uid = w->how->user->uid;
    struct stat st;
    bool writable;

    if (safe_open_is_in_proc(w->dir))
        return false;
    if (fstat(w->dir, &st) < 0 || st.st_uid == uid)
        return true;
    MUST(seteuid(uid) == 0);
    writable = faccessat(w->dir, ".", W_OK, AT_EACCESS) == 0;
    MUST(seteuid(0) == 0);
    *sticky = writable && (st.st_mode & S_ISVTX) != 0;
    return writable && !*sticky;
}

/* In a sticky directory: may the user have made this entry, perhaps as a hard link? */
static bool safe_open_user_can_have_made(const struct stat *st)
{
    return st->st_uid != 0 || S_ISLNK(st->st_mode) || (!S_ISDIR(st->st_mode) && st->st_nlink > 1);
}

/* Take the next name of the path. NULL: no name is left, or the name is too long. */
static const char *safe_open_next_name(struct walk *w, char name[NAME_MAX + 1], bool *last)
{
    const char *begin = w->rest + strspn(w->rest, "/");
    size_t len = strcspn(begin, "/");
    const char *rest = begin + len + strspn(begin + len, "/");

    if (len == 0 || len > NAME_MAX)
        return NULL;
    memcpy(name, begin, len);
    name[len] = '\0';
    *last = *rest == '\0';
    memmove(w->rest, rest, strlen(rest) + 1);
    return name;
}

static void safe_open_walk_to(struct walk *w, int fd)
{
    close(w->dir);
    w->dir = fd;
}

/* Follow the symbolic link ${fd}; -EAGAIN: go on with the next component. */
static int safe_open_follow(struct walk *w, int fd)
{
    char target[PATH_MAX], joined[2 * PATH_MAX];
    ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    if (++w->links > MAX_LINKS)
        return -ELOOP;
    if ((size_t)snprintf(joined, sizeof(joined), "%s/%s", target, w->rest) >= sizeof(w->rest))
        return -ENAMETOOLONG;
    strcpy(w->rest, joined);
    if (target[0] == '/') {
        int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (root < 0)
            return -errno;
        safe_open_walk_to(w, root);
    }
    return -EAGAIN;
}

static int safe_open_last(const struct walk *w, const char *name, int more_flags)
{
    int fd = openat(w->dir, name, (w->how->flags & ~(O_CREAT | O_EXCL)) | more_flags, w->how->mode);

    return fd < 0 ? -errno : fd;
}

/* Is ${fd} the file that was checked? It may have been replaced after the check. */
static bool safe_open_is_same_file(int fd, const struct stat *looked_at)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_dev == looked_at->st_dev && st.st_ino == looked_at->st_ino;
}

static int safe_open_entry(const struct walk *w, const char *name, const struct stat *st, int entry)
{
    int fd;

    if ((w->how->flags & O_EXCL) != 0)
        return -EEXIST;
    if (S_ISLNK(st->st_mode) && safe_open_is_in_proc(entry))
        return safe_open_last(w, name, 0);
    fd = safe_open_last(w, name, O_NOFOLLOW);
    if (fd < 0 || safe_open_is_same_file(fd, st))
        return fd;
    close(fd);
    return -EACCES;
}

/*
 * Resolve one component. Returns a descriptor, -EAGAIN to go on with the next component, or -errno.
 */
static int safe_open_walk_step(struct walk *w)
{
    char name[NAME_MAX + 1];
    bool last, sticky = false;
    struct stat st;
    int entry, rc = -EAGAIN;

    if (!safe_open_next_name(w, name, &last))
        return -EISDIR;
    if (safe_open_user_can_change(w, &sticky))
        return -EACCES;
    entry = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (entry < 0 && errno == ENOENT && last && (w->how->flags & O_CREAT) != 0)
        return safe_open_last(w, name, O_CREAT | O_EXCL | O_NOFOLLOW);
    if (entry < 0)
        return -errno;
    if (fstat(entry, &st) < 0)
        rc = -errno;
    else if (sticky && safe_open_user_can_have_made(&st))
        rc = -EACCES;
    else if (S_ISLNK(st.st_mode) && last && (w->how->flags & O_NOFOLLOW) != 0)
        rc = -ELOOP;
    else if (last && (!S_ISLNK(st.st_mode) || safe_open_is_in_proc(entry)))
        rc = safe_open_entry(w, name, &st, entry);
    else if (S_ISLNK(st.st_mode))
        rc = safe_open_follow(w, entry);
    else {
        safe_open_walk_to(w, entry);
        return -EAGAIN;
    }
    close(entry);
    return rc;
}

static int safe_open_as_root(const struct safe_open *how)
{
    struct walk w = {.how = how};
    int rc;

    if ((size_t)snprintf(w.rest, sizeof(w.rest), "%s", how->path) >= sizeof(w.rest))
        return -ENAMETOOLONG;
    w.dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w.dir < 0)
        return -errno;
    do
        rc = safe_open_walk_step(&w);
    while (rc == -EAGAIN);
    close(w.dir);
    if (rc == -EACCES)
        log_error(
            "%s: not opened as root: uid %ld could have put it there: choose a directory that "
            "only root can write",
            how->path, (long)how->user->uid);
    return rc;
}

static int safe_open_as_user(const struct safe_open *how)
{
    int fd;

    MUST(seteuid(how->user->uid) == 0);
    fd = open(how->path, how->flags, how->mode);
    if (fd < 0)
        fd = -errno;
    MUST(seteuid(0) == 0);
    return fd;
}

int safe_open(int *out_fd, bool *as_root, const struct safe_open *how)
{
    const struct privileges *user = how->user;
    struct privileges_groups *ours;
    int fd, rc;

    *as_root = false;
    if (!user || !user->change || user->uid == 0 || geteuid() != 0) {
        fd = open(how->path, how->flags, how->mode);
        if (fd < 0)
            return -errno;
        *out_fd = fd;
        return 0;
    }
    rc = privileges_take_groups(&ours, user);
    if (rc < 0)
        return rc;
    fd = safe_open_as_user(how);
    if (fd == -EACCES || fd == -EPERM) {
        *as_root = true;
        fd = safe_open_as_root(how);
    }
    privileges_return_groups(ours);
    if (fd < 0)
        return fd;
    *out_fd = fd;
    return 0;
}
