/*
 * ini/ini_adapter: reads values with iniparser.
 *
 * iniparser searches linearly, so it gets a long file in parts, each with a section header.
 */
#ifndef INI_INI_ADAPTER_H
#define INI_INI_ADAPTER_H

#include "base/must.h"
#include "ini/ini_scan.h"
#include "ini/ini_types.h"

struct ini_values;

/*
 * ini_adapter_load(out, text):
 * Let iniparser read ${text} after ini_scan_lines().
 *
 * Thread: as config_reload()
 * Errors: 0; -ENOMEM; -EIO (iniparser failed); -errno of a memfd
 */
int ini_adapter_load(struct ini_values **out, const struct ini_text *text) NODISCARD;

/*
 * ini_adapter_take(values, ini, diagnostics):
 * Set entries of ${ini}, except refused entries, to iniparser's values. If a value differs from the
 * scanner's, refuse the entry and report it.
 *
 * Thread: as config_reload()
 * Owns:   the entries then point into ${values}
 */
void ini_adapter_take(struct ini_values *values, struct ini *ini, struct diagnostics *diagnostics);

/* ini_adapter_free(values): free ${values} or NULL. */
void ini_adapter_free(struct ini_values *values);

#endif
