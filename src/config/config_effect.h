/*
 * config/config_effect: options that have no effect beside the others of their section.
 *
 * One table for two uses: config_load() refuses such an option, even if its value is the default;
 * config_dump() comments it out, so that a dump can be loaded.
 */
#ifndef CONFIG_CONFIG_EFFECT_H
#define CONFIG_CONFIG_EFFECT_H

#include "config/config_section.h"

struct diagnostics;

/*
 * config_effect_missing(section, key):
 * Return why ${key} has no effect in ${section}; NULL: it has, or may have, as another option was
 * refused.
 *
 * Thread: before start
 */
const char *config_effect_missing(const struct config_section *section, const char *key);

/*
 * config_effect_check(section, diagnostics):
 * Report the options in the file that have no effect.
 *
 * Thread: before start
 */
void config_effect_check(const struct config_section *section, struct diagnostics *diagnostics);

#endif
