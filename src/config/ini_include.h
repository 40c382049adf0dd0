/*
 * config/ini_include: an INI file and the files that it includes, as one text.
 *
 *   include = more.ini       before the first section of a file: the text of that file; a path
 *   relative to this file
 *   include = /etc/x.d       all of its files *.ini, in the order of their names
 *
 * The report learns which lines come from which file, so that each problem names its file.
 */
#ifndef CONFIG_INI_INCLUDE_H
#define CONFIG_INI_INCLUDE_H

#include "base/must.h"
#include "config/ini_scan.h"

struct diagnostics;

#define INI_INCLUDE_DEPTH 8
#define INI_INCLUDE_FILES 1000

/*
 * ini_include_read(out, path, report):
 * Read ${path} and all files that it includes. An included file that cannot be read is left out and
 * reported.
 *
 * Thread: before start
 * Owns:   the caller frees ${out}->bytes
 * Errors: 0; as read_file() for ${path}, reported; -ENOMEM
 */
int ini_include_read(struct ini_text *out, const char *path,
                     struct diagnostics *diagnostics) NODISCARD;

#endif
