/*
 * config/config_checks: the steps of health checks: those of `check = redis` and the like, and what
 * holds between steps.
 */
#ifndef CONFIG_CONFIG_CHECKS_H
#define CONFIG_CONFIG_CHECKS_H

#include "base/must.h"
#include "option/section.h"
#include "ini/ini_types.h"
#include "upstream/upstream.h"

struct diagnostics;

/* config_checks_step(text, conf, i): write step ${i} of a named check; false: it has no more. */
bool config_checks_step(char text[INI_VALUE_BYTES], const struct upstream_checks_conf *conf,
                        unsigned i);

/*
 * config_checks_all(section, diagnostics):
 * Set the steps of an upstream with a named check, and report problems between steps.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_checks_all(const struct section *section, struct diagnostics *diagnostics) NODISCARD;

#endif
