/*
 * config/config_memory: private data of config_*.c: the parsed file and its arena.
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

/* ${sections}: those not in the file, then those of the file in order. */
struct config_memory {
    struct arena *arena;
    struct ini *ini;
    struct config_section *sections;
    unsigned n_sections;
    bool incomplete; /* a section of the file was refused */
};

/*
 * config_build_all(config, diagnostics):
 * Create config->memory->sections and fill the structs with defaults and the file's values.
 *
 * Thread: before start
 * Errors: 0 (problems are in ${diagnostics}); -ENOMEM
 */
int config_build_all(struct config *config, struct diagnostics *diagnostics) NODISCARD;

/*
 * config_access_all(config, diagnostics):
 * Read the access rules of each listener and their files.
 *
 * Thread: before start
 * Errors: 0 (problems are in ${diagnostics}); -ENOMEM
 */
int config_access_all(const struct config *config, struct diagnostics *diagnostics) NODISCARD;

/*
 * config_check_all(config, diagnostics):
 * Report problems between options and between sections, except for values already refused.
 *
 * Thread: before start
 * Errors: 0; -ENOMEM
 */
int config_check_all(const struct config *config, struct diagnostics *diagnostics) NODISCARD;

#endif
