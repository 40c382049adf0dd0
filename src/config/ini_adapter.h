/*
 * config/ini_adapter: the values of an INI file, as iniparser reads them.
 *
 * iniparser's look-up is a walk over all names it has, so it gets a long file in parts of about a
 * thousand lines; a section that is cut has its header in each of them.
 */
#ifndef CONFIG_INI_ADAPTER_H
#define CONFIG_INI_ADAPTER_H

#include "base/must.h"
#include "config/ini.h"
#include "config/ini_scan.h"

struct ini_values;

/*
 * ini_adapter_load(out, text):
 * Have iniparser read ${text}, which ini_scan_lines() has gone through.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}; ${text} is copied
 * Errors: 0; -ENOMEM; -EIO (iniparser gave up); -errno of a memfd
 */
int ini_adapter_load(struct ini_values **out, const struct ini_text *text) NODISCARD;

/*
 * ini_adapter_take(values, ini, report):
 * Put iniparser's values into all entries of ${ini} that are not refused; what is another one than
 * the scanner saw is refused, and goes to ${report}.
 *
 * Thread: before start
 * Owns:   the entries then point into ${values}
 */
void ini_adapter_take(struct ini_values *values, struct ini *ini, struct diagnostics *diagnostics);

/*
 * ini_adapter_free(values):
 * Free them; NULL is allowed.
 *
 * Thread: any
 */
void ini_adapter_free(struct ini_values *values);

#endif
