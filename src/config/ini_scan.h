/*
 * config/ini_scan: reads the lines of an INI file by strict rules, and says what is wrong with
 * them.
 *
 * What iniparser would take for something else than a reader does is refused here: continued lines,
 * colons in names, a `#` that nobody sees as a comment. So what passes means the same to both.
 */
#ifndef CONFIG_INI_SCAN_H
#define CONFIG_INI_SCAN_H

#include <stddef.h>

#include "base/must.h"

struct arena;
struct ini;
struct diagnostics;

/* The bytes of a file; not NUL-terminated. */
struct ini_text {
    char *bytes;
    size_t len;
};

/*
 * ini_scan_value(out, text):
 * Cut the value out of ${text}, what stands behind the '=' of a line: without quotes, blanks and
 * comment.
 *
 * Thread: any
 * Owns:   ${out} is within ${text}
 * Errors: NULL; otherwise what is wrong with the value
 */
const char *ini_scan_value(const char **out, char *text) NODISCARD;

/*
 * ini_scan_is_text(text, report):
 * Is it text: no byte order mark, no carriage return, no NUL and no other control character? The
 * first of these goes to ${report}, which may be NULL.
 *
 * Thread: any
 * Errors: 0; -EINVAL (no)
 */
int ini_scan_is_text(const struct ini_text *text, struct diagnostics *diagnostics) NODISCARD;

/*
 * ini_scan_lines(ini, text, arena, report):
 * Fill ${ini} with the sections and entries of ${text}; what is refused goes to ${report}, and its
 * line is taken out of ${text} (the newline stays). So what is left in ${text} is what is in
 * ${ini}.
 *
 * Thread: any
 * Owns:   what ${ini} then points at is of ${arena}
 * Errors: 0; -EINVAL (more sections or entries than INI_MAX_..., the first too many is in
 *         ${report}); -ENOMEM
 */
int ini_scan_lines(struct ini *ini, struct ini_text *text, struct arena *arena,
                   struct diagnostics *diagnostics) NODISCARD;

#endif
