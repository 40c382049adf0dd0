/*
 * tls/tls_load: state of loading one profile: files read, warnings, and the cause of a refusal.
 */
#ifndef TLS_TLS_LOAD_H
#define TLS_TLS_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "base/read_file.h"
#include "base/text.h"

struct evp_md_ctx_st;

struct tls_load {
    char *why; /* cause of the refusal: `option: file: cause` */
    size_t why_size;
    const char *option;           /* the option being read, named in the texts */
    struct evp_md_ctx_st *digest; /* of all files' contents */
    struct text warnings;         /* lines in the format of `why` */
    struct text paths;            /* files and directories looked at, each with its NUL */
    uint64_t fingerprint;         /* tls_load_stat() of all `paths`, each before it was read */
};

/*
 * tls_load_stat(fingerprint, path):
 * Return ${fingerprint} mixed with inode, size and times of ${path}, or with zeros if there is no
 * file.
 *
 * Thread: any but loops
 */
uint64_t tls_load_stat(uint64_t fingerprint, const char *path);

/*
 * tls_load_note(l, path):
 * Record that the profile depends on ${path}, which may not exist. Call this before reading the
 * file.
 *
 * Thread: owner of ${l}
 */
void tls_load_note(struct tls_load *l, const char *path);

/*
 * tls_load_read(l, f, path):
 * Read a file, and add its bytes to the digest of the profile.
 *
 * Thread: any but loops
 * Owns:   the caller frees ${f}->bytes
 * Errors: 0; -EINVAL (see ${l}->why); -ENOMEM
 */
int tls_load_read(struct tls_load *l, struct file_content *f, const char *path) NODISCARD;

/*
 * tls_load_refuse(l, format, ...) / tls_load_memory(l):
 * Write the cause to ${l}->why, clear the library's error queue, and return -EINVAL / -ENOMEM.
 *
 * Thread: owner of ${l}
 */
int tls_load_refuse(struct tls_load *l, const char *format, ...) PRINTF_LIKE(2, 3);
int tls_load_memory(struct tls_load *l);

/* tls_load_warn(l, format, ...): add a warning. Thread: owner of ${l} */
void tls_load_warn(struct tls_load *l, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * tls_load_library():
 * Return this thread's oldest error of the library, such as "bad end line".
 *
 * Owns:   static text
 */
const char *tls_load_library(void);

#endif
