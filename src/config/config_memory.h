/*
 * config/config_memory: what a configuration keeps beside the structs it fills: the file it came
 * from.
 *
 * Only config_*.c look in here.
 */
#ifndef CONFIG_CONFIG_MEMORY_H
#define CONFIG_CONFIG_MEMORY_H

#include <stdbool.h>

#include "base/must.h"
#include "config/config_section.h"

struct arena;
struct config;
struct ini;
struct diagnostics;

/* The order of ${sections} is that of the file, after those that are not in it. */
struct config_memory {
    struct arena *arena;
    struct ini *ini;
    struct config_section *sections;
    unsigned n_sections;
    bool incomplete; /* some section of the file was refused and is not here */
};

/*
 * config_build_all(config, report):
 * Make config->memory->sections of the file and fill the structs with defaults and with what the
 * file says.
 *
 * Thread: before start
 * Errors: 0 (what is wrong with the file is in ${report}); -ENOMEM
 */
int config_build_all(struct config *config, struct diagnostics *diagnostics) NODISCARD;

/*
 * config_access_all(config, report):
 * Read the access rules of each listener, and the files they are in.
 *
 * Thread: before start
 * Errors: 0 (what is wrong with them is in ${report}); -ENOMEM
 */
int config_access_all(const struct config *config, struct diagnostics *diagnostics) NODISCARD;

/*
 * config_check_all(config, report):
 * Add to ${report} what is wrong between options and between sections. A value that was refused is
 * not looked at again.
 *
 * Thread: before start
 * Errors: 0; -ENOMEM
 */
int config_check_all(const struct config *config, struct diagnostics *diagnostics) NODISCARD;

#endif
