/*
 * base/read_file: read a whole file into memory.
 */
#ifndef BASE_READ_FILE_H
#define BASE_READ_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

#define READ_FILE_PROBLEM_BYTES 128

struct file_content {
    char *bytes; /* not NUL-terminated */
    size_t len;
    bool others_read;                      /* its mode lets other users read the file */
    char problem[READ_FILE_PROBLEM_BYTES]; /* why reading failed, such as `cannot be opened: ...` */
};

/*
 * read_file(f, path, max_bytes):
 * Read the regular file at ${path}, without blocking on a FIFO.
 *
 * Owns:   the caller frees ${f}->bytes, unless an error is returned
 * Errors: 0; -errno from opening or reading; -EISDIR; -EINVAL (not a regular file); -EFBIG (over
 *         ${max_bytes}); -ENOMEM (the only error that sets no ${f}->problem)
 */
int read_file(struct file_content *f, const char *path, size_t max_bytes) NODISCARD;

#endif
