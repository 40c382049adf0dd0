/*
 * config/config_effect: finds options without effect, such as one whose handler is not in the
 * pipeline.
 *
 * config_load() refuses such an option, even with its default value; config_dump() comments it out,
 * so that a dump can be loaded.
 */
#ifndef CONFIG_CONFIG_EFFECT_H
#define CONFIG_CONFIG_EFFECT_H

#include "config/config_section.h"

struct diagnostics;

/*
 * config_effect_missing(section, key):
 * Return why ${key} has no effect; NULL: it has an effect, or depends on an option that was
 * refused.
 */
const char *config_effect_missing(const struct config_section *section, const char *key);

/*
 * config_effect_check(section, diagnostics):
 * Report options of the file that have no effect.
 *
 * Thread: as config_reload()
 */
void config_effect_check(const struct config_section *section, struct diagnostics *diagnostics);

#endif
