/*
 * config/config_tls: loads the files of [tls NAME] sections, and gives profiles to the sections
 * that use them.
 */
#ifndef CONFIG_CONFIG_TLS_H
#define CONFIG_CONFIG_TLS_H

#include "base/must.h"

struct config;
struct diagnostics;

/*
 * config_tls_all(config, running, diagnostics):
 * Load all profiles and check them. A section that ${running} has too keeps its slot, and also its
 * profile if the files and settings are the same. ${running}: NULL at start.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_tls_all(struct config *config, const struct config *running,
                   struct diagnostics *diagnostics) NODISCARD;

#endif
