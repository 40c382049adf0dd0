#include "tls/tls_load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "base/hash.h"

#define TLS_LOAD_FILE_BYTES (16U << 20)

uint64_t tls_load_stat(uint64_t fingerprint, const char *path)
{
    struct stat st;
    uint64_t marks[7] = {0};

    if (stat(path, &st) == 0) {
        marks[0] = (uint64_t)st.st_dev;
        marks[1] = (uint64_t)st.st_ino;
        marks[2] = (uint64_t)st.st_size;
        marks[3] = (uint64_t)st.st_mtim.tv_sec;
        marks[4] = (uint64_t)st.st_mtim.tv_nsec;
        marks[5] = (uint64_t)st.st_ctim.tv_sec; /* ctime changes with owner and mode, too */
        marks[6] = (uint64_t)st.st_ctim.tv_nsec;
    }
    return hash_mix(fingerprint ^ hash_stable(marks, sizeof(marks)));
}

void tls_load_note(struct tls_load *l, const char *path)
{
    l->fingerprint = tls_load_stat(l->fingerprint, path);
    text_add(&l->paths, path, strlen(path) + 1);
}

int tls_load_read(struct tls_load *l, struct file_content *f, const char *path)
{
    int rc;

    tls_load_note(l, path);
    rc = read_file(f, path, TLS_LOAD_FILE_BYTES);
    if (rc < 0)
        return rc == -ENOMEM ? tls_load_memory(l) : tls_load_refuse(l, "%s: %s", path, f->problem);
    if (EVP_DigestUpdate(l->digest, &f->len, sizeof(f->len)) == 1 &&
        EVP_DigestUpdate(l->digest, f->bytes, f->len) == 1)
        return 0;
    free(f->bytes);
    return tls_load_memory(l);
}

int tls_load_refuse(struct tls_load *l, const char *format, ...)
{
    size_t used = (size_t)snprintf(l->why, l->why_size, "%s: ", l->option);
    va_list args;

    va_start(args, format);
    if (used < l->why_size)
        vsnprintf(l->why + used, l->why_size - used, format, args);
    va_end(args);
    ERR_clear_error();
    return -EINVAL;
}

int tls_load_memory(struct tls_load *l)
{
    tls_load_refuse(l, "%s", "no memory");
    return -ENOMEM;
}

void tls_load_warn(struct tls_load *l, const char *format, ...)
{
    char line[512];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    text_printf(&l->warnings, "%s: %s\n", l->option, line);
}

const char *tls_load_library(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());

    return reason ? reason : "unknown cause";
}
