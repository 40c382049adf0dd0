/*
 * daemon/config_memory: what a configuration keeps beside the structs it fills: the file it came from.
 *
 * Only config_*.c look in here.
 */
#ifndef DAEMON_CONFIG_MEMORY_H
#define DAEMON_CONFIG_MEMORY_H

#include <stdbool.h>

#include "base/must.h"
#include "daemon/ini.h"
#include "daemon/option.h"

struct arena;
struct config;
struct report;

struct config_section {
    enum option_section kind;
    const char *name;           /* NULL for a kind that has none */
    struct ini_section *source; /* NULL: not in the file, all defaults */
    void *conf;                 /* the struct it fills: config, server_boss_conf, ... */
};

/* The order of ${sections} is that of the file, after those that are not in it. */
struct config_memory {
    struct arena *arena;
    struct ini *ini;
    struct config_section *sections;
    unsigned n_sections;
    bool incomplete; /* some section of the file was refused and is not here */
};

/*
 * config_entry(section, key):
 * The line of ${key}, or NULL if the file does not have it.
 *
 * Thread: before start
 * Owns:   lives as long as the configuration
 * Errors: NULL
 */
const struct ini_entry *config_entry(const struct config_section *section, const char *key);

/*
 * config_sound(section, key):
 * As config_entry(), and NULL as well if something was wrong with it so far.
 *
 * Thread: before start
 * Owns:   lives as long as the configuration
 * Errors: NULL
 */
const struct ini_entry *config_sound(const struct config_section *section, const char *key);

/*
 * config_refused(section, key):
 * Has the file ${key}, and was something wrong with it? Then nobody knows what it was to be.
 *
 * Thread: before start
 * Errors: none
 */
bool config_refused(const struct config_section *section, const char *key);

/*
 * config_changed(section, key):
 * As config_sound(), and NULL as well if it says what the default says, as each line of a dump may. ${key} has a default.
 *
 * Thread: before start
 * Owns:   lives as long as the configuration
 * Errors: NULL
 */
const struct ini_entry *config_changed(const struct config_section *section, const char *key);

/*
 * config_find_upstream(config, name):
 * Which of the upstreams ${name} is.
 *
 * Thread: before start
 * Errors: -1
 */
int config_find_upstream(const struct config *config, const char *name);

/*
 * config_build_all(config, report):
 * Make config->memory->sections of the file and fill the structs with defaults and with what the file says.
 *
 * Thread: before start
 * Errors: 0 (what is wrong with the file is in ${report}); -ENOMEM
 */
int config_build_all(struct config *config, struct report *report) MUST_CHECK;

/*
 * config_access_all(config, report):
 * Read the access rules of each listener, and the files they are in.
 *
 * Thread: before start
 * Errors: 0 (what is wrong with them is in ${report}); -ENOMEM
 */
int config_access_all(const struct config *config, struct report *report) MUST_CHECK;

/*
 * config_check_all(config, report):
 * Add to ${report} what is wrong between options and between sections. A value that was refused is not
 * looked at again.
 *
 * Thread: before start
 * Errors: 0; -ENOMEM
 */
int config_check_all(const struct config *config, struct report *report) MUST_CHECK;

#endif
