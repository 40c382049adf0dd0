/*
 * config/ini_scan: strict scanner of INI lines.
 *
 * Refuses what iniparser reads differently than people: continued lines, colons in names, a `#`
 * that does not look like a comment. Accepted text means the same to both.
 */
#ifndef CONFIG_INI_SCAN_H
#define CONFIG_INI_SCAN_H

#include <stddef.h>

#include "base/must.h"

struct arena;
struct ini;
struct diagnostics;

/* Content of a file; not NUL-terminated. */
struct ini_text {
    char *bytes;
    size_t len;
};

/*
 * ini_scan_value(out, text):
 * Cut the value from ${text}, which follows the '=', without quotes, blanks and comment. Return
 * NULL, or the problem.
 *
 * Thread: any
 * Owns:   ${out} points into ${text}
 */
const char *ini_scan_value(const char **out, char *text) NODISCARD;

/*
 * ini_scan_is_text(text, diagnostics):
 * Check for byte order mark, carriage return, NUL and other control characters; report the first to
 * ${diagnostics}, if any.
 *
 * Thread: any
 * Errors: 0; -EINVAL
 */
int ini_scan_is_text(const struct ini_text *text, struct diagnostics *diagnostics) NODISCARD;

/*
 * ini_scan_lines(ini, text, arena, diagnostics):
 * Fill ${ini} with the sections and entries of ${text}. Report refused lines and blank them in
 * ${text}, so that ${text} matches ${ini}.
 *
 * Thread: any
 * Owns:   ${arena} owns what ${ini} points at
 * Errors: 0; -EINVAL (over INI_MAX_..., reported); -ENOMEM
 */
int ini_scan_lines(struct ini *ini, struct ini_text *text, struct arena *arena,
                   struct diagnostics *diagnostics) NODISCARD;

#endif
