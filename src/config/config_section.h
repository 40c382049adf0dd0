/*
 * config/config_section: a section of the configuration, and what the file says in it.
 */
#ifndef CONFIG_CONFIG_SECTION_H
#define CONFIG_CONFIG_SECTION_H

#include <stdbool.h>

#include "config/ini.h"
#include "config/option.h"

struct config_section {
    enum option_section kind;
    const char *name;           /* NULL for a kind that has none */
    struct ini_section *source; /* NULL: not in the file, all defaults */
    void *conf;                 /* the struct it fills: config, server_boss_conf, ... */
};

/*
 * config_section_entry(section, key):
 * The line of ${key}, or NULL if the file does not have it.
 *
 * Thread: before start
 * Owns:   lives as long as the configuration
 * Errors: NULL
 */
const struct ini_entry *config_section_entry(const struct config_section *section, const char *key);

/*
 * config_section_sound(section, key):
 * As config_section_entry(), and NULL as well if something was wrong with it so far.
 *
 * Thread: before start
 * Owns:   lives as long as the configuration
 * Errors: NULL
 */
const struct ini_entry *config_section_sound(const struct config_section *section, const char *key);

/*
 * config_section_refused(section, key):
 * Has the file ${key}, and was something wrong with it? Then nobody knows what it was to be.
 *
 * Thread: before start
 */
bool config_section_refused(const struct config_section *section, const char *key);

/*
 * config_section_changed(section, key):
 * As config_section_sound(), and NULL as well if it says what the default says, as each line of a
 * dump may. ${key} has a default.
 *
 * Thread: before start
 * Owns:   lives as long as the configuration
 * Errors: NULL
 */
const struct ini_entry *config_section_changed(const struct config_section *section,
                                               const char *key);

#endif
