/*
 * config/ini_include: INI file with its includes, as one text; diagnostics map the lines to files.
 *
 *   include = more.ini       before the first section, or behind a [defaults KIND]; relative to
 *                            the including file
 *   include = /etc/x.d       all its *.ini, sorted by name
 */
#ifndef CONFIG_INI_INCLUDE_H
#define CONFIG_INI_INCLUDE_H

#include "base/must.h"
#include "config/ini_scan.h"

struct diagnostics;

#define INI_INCLUDE_DEPTH 8
#define INI_INCLUDE_FILES 1000

/*
 * ini_include_read(out, path, diagnostics):
 * Read ${path} and its includes. Unreadable includes are reported and left out.
 *
 * Thread: as config_reload()
 * Owns:   the caller frees ${out}->bytes
 * Errors: 0; as read_file() for ${path}, reported; -ENOMEM
 */
int ini_include_read(struct ini_text *out, const char *path,
                     struct diagnostics *diagnostics) NODISCARD;

#endif
