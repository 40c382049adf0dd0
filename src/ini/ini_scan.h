/*
 * ini/ini_scan: strict scanner of INI lines.
 *
 * Refuses what iniparser misreads: continued lines, colons in names, a `#` inside a value.
 */
#ifndef INI_INI_SCAN_H
#define INI_INI_SCAN_H

#include <stddef.h>

#include "base/must.h"

struct arena;
struct ini;
struct diagnostics;

/* A text that is not NUL-terminated. */
struct ini_text {
    char *bytes;
    size_t len;
};

/*
 * ini_scan_is_text(text, diagnostics):
 * Refuse byte order mark, carriage return, NUL and other control characters; report the first one
 * unless ${diagnostics} is NULL.
 *
 * Errors: 0; -EINVAL
 */
int ini_scan_is_text(const struct ini_text *text, struct diagnostics *diagnostics) NODISCARD;

/*
 * ini_scan_lines(ini, text, arena, diagnostics):
 * Fill ${ini} from ${text}. Report refused lines and overwrite them with blanks in ${text}.
 *
 * Owns:   ${arena} owns what ${ini} points at
 * Errors: 0; -EINVAL (over INI_MAX_..., reported); -ENOMEM
 */
int ini_scan_lines(struct ini *ini, struct ini_text *text, struct arena *arena,
                   struct diagnostics *diagnostics) NODISCARD;

#endif
