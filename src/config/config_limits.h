/* config/config_limits: gives the limits of [limits NAME] sections to listeners. */
#ifndef CONFIG_CONFIG_LIMITS_H
#define CONFIG_CONFIG_LIMITS_H

#include "base/must.h"

struct config_memory;
struct diagnostics;

/*
 * config_limits_all(m, diagnostics):
 * Give each listener the limits that its `limits` names, and exempt the proxies of all that share
 * them from bans; warn of sections that have no effect.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_limits_all(const struct config_memory *m, struct diagnostics *diagnostics) NODISCARD;

#endif
