#include "system/pid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parse.h"
#include "system/safe_open.h"

/* More than a pid with newline, to recognize other content. */
#define CONTENT_BYTES 32

/* Maximum attempts: another reactord may remove the file between open and lock. */
#define ATTEMPTS 16

struct pid_file {
    int fd;
    char *path;
    bool is_given; /* the file belongs to another process */
};

/* Use an OFD lock: it belongs to the open file, so it can be handed over (fcntl_locking(2)). */
static int pid_file_lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &whole) < 0 ? -errno : 0;
}

static bool pid_file_is_at_path(int fd, const char *path)
{
    struct stat open_file, named;

    return fstat(fd, &open_file) == 0 && lstat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/* Return the pid in the file; 0: empty; -EINVAL: other content; or -errno. */
static long pid_file_read_pid(int fd)
{
    char content[CONTENT_BYTES];
    ssize_t n = pread(fd, content, sizeof(content) - 1, 0);
    uint64_t pid;

    if (n < 0)
        return -errno;
    if (n > 0 && content[n - 1] == '\n')
        n--;
    else if (n == (ssize_t)sizeof(content) - 1)
        return -EINVAL;
    if (n == 0)
        return 0;
    content[n] = '\0';
    if (parse_uint(&pid, content, INT32_MAX) < 0)
        return -EINVAL;
    return (long)pid;
}

static int pid_file_write_pid(int fd, pid_t pid)
{
    char content[CONTENT_BYTES];
    int len = snprintf(content, sizeof(content), "%ld\n", (long)pid);
    ssize_t n;

    /* Truncate after the write: meanwhile a reader finds a pid in the first line. */
    n = pwrite(fd, content, (size_t)len, 0);
    if (n != len)
        return n < 0 ? -errno : -ENOSPC;
    return ftruncate(fd, len) < 0 ? -errno : 0;
}

static int pid_file_create_failed(const char *path, int rc, long pid)
{
    if (rc == -EBUSY && pid > 0)
        log_error("pid file %s: already running as pid %ld", path, pid);
    else if (rc == -EBUSY)
        log_error("pid file %s: already running", path);
    else if (rc == -EINVAL)
        log_error("pid file %s: is no pid file, left unchanged: remove it, or choose another path",
                  path);
    else
        log_error("pid file %s: %s", path, strerror(-rc));
    return rc;
}

/* Open and lock ${path}. -EAGAIN: the file was removed before the lock; -EBUSY sets ${holder}. */
static int pid_file_acquire(int *out_fd, long *holder, const char *path,
                            const struct privileges *user)
{
    const struct safe_open how = {.path = path,
                                  /* Do not follow a symbolic link or block on a fifo. */
                                  .flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
                                           O_CLOEXEC,
                                  .mode = 0600,
                                  .user = user};
    struct stat st;
    bool as_root;
    int fd, rc = safe_open(&fd, &as_root, &how);

    if (rc < 0)
        return rc;
    rc = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? pid_file_lock(fd) : -EINVAL;
    if (rc == -EAGAIN || rc == -EACCES) {
        *holder = pid_file_read_pid(fd);
        rc = -EBUSY;
    } else if (rc == 0 && !pid_file_is_at_path(fd, path)) {
        rc = -EAGAIN;
    } else if (rc == 0 && (st.st_mode & 077) != 0 && (geteuid() == 0 || st.st_uid == geteuid()) &&
               fchmod(fd, 0600) < 0) {
        rc = -errno;
    }
    if (rc < 0)
        close(fd);
    else
        *out_fd = fd;
    return rc;
}

static void pid_file_unlink(const struct pid_file *pf)
{
    /*
     * Remove the file before unlocking it: a process that locks it afterwards sees that it is gone,
     * and retries. Emptying is safe even if the path leads to another file now.
     */
    if (!(pid_file_is_at_path(pf->fd, pf->path) && unlink(pf->path) == 0) &&
        ftruncate(pf->fd, 0) < 0)
        log_warning("pid file %s: can be neither removed nor emptied: %s", pf->path,
                    strerror(errno));
}

int pid_file_create(struct pid_file **out, const char *path, const struct privileges *user)
{
    struct pid_file *pf = calloc(1, sizeof(*pf));
    long pid = 0;
    int rc = -ENOMEM;

    if (!pf)
        return pid_file_create_failed(path, rc, 0);
    pf->path = strdup(path);
    if (!pf->path)
        goto err_free;
    for (int i = 0; i < ATTEMPTS; i++) {
        rc = pid_file_acquire(&pf->fd, &pid, path, user);
        if (rc != -EAGAIN)
            break;
    }
    if (rc < 0)
        goto err_free;
    pid = pid_file_read_pid(pf->fd);
    rc = pid < 0 ? (int)pid : pid_file_write_pid(pf->fd, getpid());
    if (rc < 0)
        goto err_close;
    if (pid > 0)
        log_notice("pid file %s: stale: it names pid %ld, but is not locked; overwritten", path,
                   pid);
    *out = pf;
    return 0;
err_close:
    if (pid >= 0 || lseek(pf->fd, 0, SEEK_END) == 0) /* not if it has other content */
        pid_file_unlink(pf);
    close(pf->fd);
err_free:
    pid_file_create_failed(path, rc, pid);
    free(pf->path);
    free(pf);
    return rc;
}

int pid_file_adopt(struct pid_file **out, const char *path, int fd)
{
    struct pid_file *pf;

    if (!pid_file_is_at_path(fd, path))
        return -ESTALE;
    pf = calloc(1, sizeof(*pf));
    if (!pf)
        return -ENOMEM;
    pf->path = strdup(path);
    if (!pf->path) {
        free(pf);
        return -ENOMEM;
    }
    pf->fd = fd;
    pf->is_given = true;
    *out = pf;
    return 0;
}

static void pid_file_write(const struct pid_file *pf, pid_t pid)
{
    int rc = pid_file_write_pid(pf->fd, pid);

    if (rc < 0)
        log_warning("pid file %s: cannot be written: %s", pf->path, strerror(-rc));
}

bool pid_file_is_adopted(const struct pid_file *pf)
{
    return pf && pf->is_given;
}

void pid_file_claim(struct pid_file *pf)
{
    if (!pf)
        return;
    pf->is_given = false;
    pid_file_write(pf, getpid());
}

void pid_file_give(struct pid_file *pf, pid_t pid)
{
    if (!pf)
        return;
    if (pid > 0)
        pid_file_write(pf, pid);
    else
        pid_file_unlink(pf);
    pf->is_given = true;
    close(pf->fd); /* while this process drains, only process ${pid} holds the lock */
    pf->fd = -1;
}

int pid_file_descriptor(const struct pid_file *pf)
{
    return pf ? pf->fd : -1;
}

void pid_file_remove(struct pid_file *pf)
{
    if (!pf)
        return;
    if (!pf->is_given)
        pid_file_unlink(pf);
    if (pf->fd >= 0)
        close(pf->fd);
    free(pf->path);
    free(pf);
}
