/*
 * config/config_access_log: [access_log NAME], and the listeners that name it.
 */
#ifndef CONFIG_CONFIG_ACCESS_LOG_H
#define CONFIG_CONFIG_ACCESS_LOG_H

#include "base/must.h"
#include "option/section.h"

struct config;
struct diagnostics;

/*
 * config_access_log_resolve(config, section, diagnostics):
 * Copy the logs that the [listen NAME] ${section} names to it; report unknown names.
 *
 * Thread: as config_reload()
 * Errors: 0; -ENOMEM
 */
int config_access_log_resolve(const struct config *config, const struct section *section,
                              struct diagnostics *diagnostics) NODISCARD;

/*
 * config_access_log_check(config, section, diagnostics):
 * Warn of an [access_log NAME] that no listener names; refuse a name that is a target.
 *
 * Thread: as config_reload()
 */
void config_access_log_check(const struct config *config, const struct section *section,
                             struct diagnostics *diagnostics);

#endif
