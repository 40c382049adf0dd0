/*
 * config/config_section: a section and its entries in the file.
 */
#ifndef CONFIG_CONFIG_SECTION_H
#define CONFIG_CONFIG_SECTION_H

#include <stdbool.h>

#include "config/option.h"
#include "ini/ini.h"

struct arena;

struct config_section {
    enum option_section kind;
    const char *name;           /* NULL: unnamed kind */
    struct ini_section *source; /* NULL: not in the file */
    void *conf;                 /* struct that its options fill: config, server_boss_conf, ... */
    struct arena *arena;        /* owns all that the struct points at */
};

/* config_section_entry(section, key): return the entry of ${key}; NULL: not in the file. */
const struct ini_entry *config_section_entry(const struct config_section *section, const char *key);

/*
 * config_section_valid_entry(section, key):
 * As config_section_entry(), but NULL also if refused.
 *
 * Thread: as config_reload()
 */
const struct ini_entry *config_section_valid_entry(const struct config_section *section,
                                                   const char *key);

/*
 * config_section_refused(section, key):
 * Does the file set ${key} to a refused value?
 *
 * Thread: as config_reload()
 */
bool config_section_refused(const struct config_section *section, const char *key);

/* config_section_has_value(section, key): has ${key} a value in the file, perhaps a refused one? */
bool config_section_has_value(const struct config_section *section, const char *key);

/* config_section_has_defaults(section): has it values of a [defaults KIND]? */
bool config_section_has_defaults(const struct config_section *section);

/* config_section_list_word(list, size, word): append ${word}, behind a comma if it is not first. */
void config_section_list_word(char *list, size_t size, const char *word);

#endif
