/*
 * config/config_memory: private data of config_*.c.
 */
#ifndef CONFIG_CONFIG_MEMORY_H
#define CONFIG_CONFIG_MEMORY_H

#include <stdbool.h>

#include "base/must.h"
#include "base/ref.h"
#include "option/section.h"

struct arena;
struct config;
struct config_edits_record;
struct ini;
struct diagnostics;

/*
 * `sections`: first the unnamed kinds that the file lacks, such as [boss], then those of the file.
 */
struct config_memory {
    struct arena *arena; /* a section has an arena of its own for what it points at */
    struct ini *ini;
    struct section *sections;
    unsigned n_sections;
    bool incomplete; /* a section of the file was refused */
    struct ref references;
    struct config *base; /* configuration of the file, a reference; NULL: this is it */
    struct config_edits_record **edits; /* references */
    unsigned n_edits;
};

/*
 * config_create(out) / config_hold(config):
 * Create an empty configuration / add a reference, for config_free(), and return ${config}.
 *
 * Errors: 0; -ENOMEM
 */
int config_create(struct config **out) NODISCARD;
struct config *config_hold(struct config *config);

/*
 * config_build_all(config, diagnostics):
 * Create the sections and fill the structs with defaults and the file's values.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_build_all(struct config *config, struct diagnostics *diagnostics) NODISCARD;

/*
 * config_access_all(config, diagnostics):
 * Read the access rules of all listeners and their files.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_access_all(const struct config *config, struct diagnostics *diagnostics) NODISCARD;

/*
 * config_namespaces_all(config, running, diagnostics):
 * Open the network namespaces of ${config}, and set those of its listen addresses. One that is open
 * already, perhaps in ${running} (may be NULL), is shared.
 *
 * Thread: as config_reload()
 * Errors: 0 (see ${diagnostics}); -ENOMEM
 */
int config_namespaces_all(const struct config *config, const struct config *running,
                          struct diagnostics *diagnostics) NODISCARD;

/*
 * config_check_all(config, diagnostics):
 * Report problems across options and sections; skip refused values.
 *
 * Thread: as config_reload()
 * Errors: 0; -ENOMEM
 */
int config_check_all(const struct config *config, struct diagnostics *diagnostics) NODISCARD;

#endif
