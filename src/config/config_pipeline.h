/*
 * config/config_pipeline: what no option of a listener's handlers can know of itself. A part of
 * config_check_all().
 */
#ifndef CONFIG_CONFIG_PIPELINE_H
#define CONFIG_CONFIG_PIPELINE_H

struct config_section;
struct diagnostics;

/*
 * config_pipeline_check(section, report):
 * Add to ${report} what is wrong between the options of the handlers of ${section}, a [listen
 * NAME]. A value that was refused is not looked at again.
 *
 * Thread: before start
 */
void config_pipeline_check(const struct config_section *section, struct diagnostics *diagnostics);

#endif
