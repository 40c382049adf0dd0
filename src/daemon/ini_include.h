/*
 * daemon/ini_include: an INI file and the files that it includes, as one text.
 *
 *   include = more.ini       before the first section of a file: the text of that file, relative to the one that says so
 *   include = /etc/x.d       all of its files *.ini, in the order of their names
 *
 * The report is told which lines come from where, so that problems name the file that they are in.
 */
#ifndef DAEMON_INI_INCLUDE_H
#define DAEMON_INI_INCLUDE_H

#include "base/must.h"
#include "daemon/ini_scan.h"

struct report;

#define INI_INCLUDE_DEPTH 8
#define INI_INCLUDE_FILES 1000

/*
 * ini_include_read(out, path, report):
 * Read ${path} and what it includes. What is wrong with an included file goes to ${report}, and the rest is there.
 *
 * Thread: before start
 * Owns:   the caller frees ${out}->bytes
 * Errors: 0; what whole_file_read() or ini_scan_is_text() has against ${path}, in ${report}; -ENOMEM
 */
int ini_include_read(struct ini_text *out, const char *path, struct report *report) MUST_CHECK;

#endif
