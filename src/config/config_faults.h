/*
 * config/config_faults: what no option for faults can know of itself. A part of config_check_all().
 */
#ifndef CONFIG_CONFIG_FAULTS_H
#define CONFIG_CONFIG_FAULTS_H

#include <stdbool.h>

struct config_section;
struct diagnostics;

/*
 * config_faults_check(section, allowed, report):
 * Add to ${report} what is wrong with the faults of ${section}, a [listen NAME]: they must be
 * ${allowed}, and what only says whom they concern needs one.
 *
 * Thread: before start
 */
void config_faults_check(const struct config_section *section, bool allowed,
                         struct diagnostics *diagnostics);

#endif
