/*
 * config/config_mirror: what the option `mirror` cannot know of itself. A part of
 * config_check_all().
 */
#ifndef CONFIG_CONFIG_MIRROR_H
#define CONFIG_CONFIG_MIRROR_H

struct config;
struct config_section;
struct diagnostics;

/*
 * config_mirror_check(config, section, report):
 * Add to ${report} what is wrong with the upstream that ${section}, a [listen NAME], has as its
 * mirror, if there is one of that name.
 *
 * Thread: before start
 */
void config_mirror_check(const struct config *config, const struct config_section *section,
                         struct diagnostics *diagnostics);

#endif
