/*
 * config/config_admin: checks of [admin], and its token.
 */
#ifndef CONFIG_CONFIG_ADMIN_H
#define CONFIG_CONFIG_ADMIN_H

#include "base/must.h"

struct config;
struct config_section;
struct diagnostics;

/*
 * config_admin_check(config, section, diagnostics):
 * Read the token of the [admin] ${section} and report what is wrong with the section.
 *
 * Thread: as config_reload()
 * Errors: 0; -ENOMEM
 */
int config_admin_check(const struct config *config, const struct config_section *section,
                       struct diagnostics *diagnostics) NODISCARD;

#endif
