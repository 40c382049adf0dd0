/* config/config_resolvers: gives the name servers of [resolver NAME] sections to upstreams. */
#ifndef CONFIG_CONFIG_RESOLVERS_H
#define CONFIG_CONFIG_RESOLVERS_H

#include "base/must.h"

struct config_memory;
struct diagnostics;

/*
 * config_resolvers_all(m, diagnostics):
 * Give each upstream the name servers that its `resolver` names.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_resolvers_all(const struct config_memory *m, struct diagnostics *diagnostics) NODISCARD;

#endif
