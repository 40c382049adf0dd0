/*
 * ini/ini_include: INI file with its includes, as one text; diagnostics map the lines to files.
 *
 *   include = more.ini       before the first section, or behind a [defaults KIND]; relative to
 *                            the including file
 *   include = /etc/x.d       all its *.ini, sorted by name
 */
#ifndef INI_INI_INCLUDE_H
#define INI_INI_INCLUDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "ini/ini_scan.h"

struct diagnostics;

#define INI_INCLUDE_DEPTH 8
#define INI_INCLUDE_FILES 1000

/* The files and directories that were read, or could not be. */
struct ini_include_files {
    uint64_t digest; /* of their paths and bytes */
    char *paths;     /* each with its NUL; a directory ends in `/` */
    size_t len;
};

/*
 * ini_include_list(out, path):
 * List ${path} and its includes, without reports.
 *
 * Owns:   the caller frees ${out}->paths
 * Errors: 0; -ENOMEM
 */
int ini_include_list(struct ini_include_files *out, const char *path) NODISCARD;

/* ini_include_takes(name): is a file of this name in an included directory read? */
bool ini_include_takes(const char *name);

/*
 * ini_include_read(out, digest, path, diagnostics):
 * Read ${path} and its includes. Unreadable includes are reported and left out.
 *
 * Thread: as config_reload()
 * Owns:   the caller frees ${out}->bytes
 * Errors: 0; as read_file() for ${path}, reported; -ENOMEM
 */
int ini_include_read(struct ini_text *out, uint64_t *digest, const char *path,
                     struct diagnostics *diagnostics) NODISCARD;

#endif
