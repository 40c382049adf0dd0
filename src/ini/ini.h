/*
 * ini/ini: INI file as sections, keys and values with line numbers.
 *
 * iniparser provides the values. It is lax (silent duplicates, a directory reads as empty, an
 * overlong line ends the file), so ini/ini_scan first reads the same bytes strictly.
 */
#ifndef INI_INI_H
#define INI_INI_H

#include "base/must.h"
#include "ini/ini_types.h"

struct diagnostics;

/*
 * ini_load(out, path, diagnostics):
 * Read ${path}. Report invalid lines and keep the others. An unreadable or binary file is reported,
 * and ${out} is not set.
 *
 * Thread: any, one at a time (iniparser's error callback is global)
 * Errors: 0 (see diagnostics_count()); -errno from opening or reading; -EISDIR; -EINVAL (not a
 *         regular file, or not text); -EFBIG; -ENOMEM (not reported)
 */
int ini_load(struct ini **out, const char *path, struct diagnostics *diagnostics) NODISCARD;

/* ini_find(section, key): return the entry of ${key}, or NULL. */
struct ini_entry *ini_find(const struct ini_section *section, const char *key);

/* ini_free(ini): free ${ini} or NULL. */
void ini_free(struct ini *ini);

#endif
