/*
 * config/config_listen: checks across the options of a [listen NAME]: pipeline, faults, mirror,
 * hash_key of its upstreams.
 */
#ifndef CONFIG_CONFIG_LISTEN_H
#define CONFIG_CONFIG_LISTEN_H

struct config;
struct section;
struct diagnostics;

/*
 * config_listen_check(config, section, diagnostics):
 * Report contradictions between options of ${section}; skip refused values.
 *
 * Thread: as config_reload()
 */
void config_listen_check(const struct config *config, const struct section *section,
                         struct diagnostics *diagnostics);

/*
 * config_listen_check_mirror(config, section, diagnostics):
 * Report what ${section}, a [listen NAME], cannot mirror to.
 *
 * Thread: as config_reload()
 */
void config_listen_check_mirror(const struct config *config, const struct section *section,
                                struct diagnostics *diagnostics);

/* config_listen_find_upstream(config, name): return the index of the upstream, or -1. */
int config_listen_find_upstream(const struct config *config, const char *name);

#endif
