#include "base/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_BYTES 65536

static int read_file_refuse(struct file_content *f, int rc, const char *what)
{
    snprintf(f->problem, sizeof(f->problem), "%s", what);
    return rc;
}

static int read_file_refuse_errno(struct file_content *f, int rc, const char *what)
{
    snprintf(f->problem, sizeof(f->problem), "%s: %s", what, strerror(-rc));
    return rc;
}

static int read_file_open_file(int *out, struct file_content *f, const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    int rc;

    if (fd < 0)
        return read_file_refuse_errno(f, -errno, "cannot be opened");
    if (fstat(fd, &st) < 0) {
        rc = read_file_refuse_errno(f, -errno, "cannot be read");
    } else if (S_ISDIR(st.st_mode)) {
        rc = read_file_refuse(f, -EISDIR, "is a directory (a file is needed)");
    } else if (!S_ISREG(st.st_mode)) {
        rc = read_file_refuse(f, -EINVAL, "is not a regular file");
    } else {
        *out = fd;
        f->others_read = (st.st_mode & S_IROTH) != 0;
        return 0;
    }
    close(fd);
    return rc;
}

/* Does not use st_size, which may be stale, and is 0 in /proc. */
static int read_all(struct file_content *f, int fd, size_t max_bytes)
{
    size_t capacity = 0;

    for (;;) {
        ssize_t n;

        if (f->len == capacity) {
            char *larger = realloc(f->bytes, capacity = capacity > 0 ? 2 * capacity : FIRST_BYTES);

            if (!larger)
                return -ENOMEM;
            f->bytes = larger;
        }
        n = read(fd, f->bytes + f->len, capacity - f->len);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            f->len += (size_t)n;
        if (f->len > max_bytes)
            return -EFBIG;
    }
}

int read_file(struct file_content *f, const char *path, size_t max_bytes)
{
    int fd = -1;
    int rc;

    *f = (struct file_content){.bytes = NULL};
    rc = read_file_open_file(&fd, f, path);
    if (rc < 0)
        return rc;
    rc = read_all(f, fd, max_bytes);
    close(fd);
    if (rc == 0)
        return 0;
    free(f->bytes);
    f->bytes = NULL;
    if (rc == -EFBIG)
        snprintf(f->problem, sizeof(f->problem), "is too large (at most %zu MiB)", max_bytes >> 20);
    else if (rc != -ENOMEM)
        read_file_refuse_errno(f, rc, "cannot be read");
    return rc;
}
