/*
 * config/config_fill: values of a section, from its entries and the built-in defaults.
 */
#ifndef CONFIG_CONFIG_FILL_H
#define CONFIG_CONFIG_FILL_H

#include "base/must.h"
#include "option/section.h"

struct diagnostics;

/* config_fill_copy(section, text): copy ${text}, as structs outlive the file; NULL: no memory. */
const char *config_fill_copy(const struct section *section, const char *text) NODISCARD;

/*
 * config_fill(section, diagnostics):
 * Fill section->conf. Report the entries that are not valid, and drop the values of a [defaults
 * KIND] that have no effect in ${section}.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_fill(const struct section *section, struct diagnostics *diagnostics) NODISCARD;

/*
 * config_fill_entry(section, entry, diagnostics):
 * Set one value of section->conf. Report ${entry} if it is not valid, and mark it as refused.
 *
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_fill_entry(const struct section *section, struct ini_entry *entry,
                      struct diagnostics *diagnostics) NODISCARD;

/* config_fill_check(section, diagnostics): as config_fill(), but fill no struct. */
int config_fill_check(const struct section *section, struct diagnostics *diagnostics) NODISCARD;

#endif
