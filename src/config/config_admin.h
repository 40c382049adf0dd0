/*
 * config/config_admin: checks of [admin], and its token.
 */
#ifndef CONFIG_CONFIG_ADMIN_H
#define CONFIG_CONFIG_ADMIN_H

#include "base/must.h"

struct admin_conf;
struct config;
struct section;
struct diagnostics;

/*
 * config_admin_check(config, section, diagnostics):
 * Read the token of the [admin] ${section} and report what is wrong with the section.
 *
 * Thread: as config_reload()
 * Errors: 0; -ENOMEM
 */
int config_admin_check(const struct config *config, const struct section *section,
                       struct diagnostics *diagnostics) NODISCARD;

/* Connections of the admin interface at a time. */
struct admin_share {
    unsigned served; /* for all requests */
    unsigned open;   /* `served`, and those for health checks above it */
};

/*
 * config_admin_share(conf):
 * Return max_connections of ${conf}. What is not configured, the default and the extra ones, is at
 * most 1/16 of the limit of open files each, so that the rest is for clients.
 */
struct admin_share config_admin_share(const struct admin_conf *conf);

#endif
