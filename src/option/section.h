/*
 * option/section: a section and its entries in the file.
 */
#ifndef OPTION_SECTION_H
#define OPTION_SECTION_H

#include <stdbool.h>

#include "option/option.h"
#include "ini/ini.h"

struct arena;

struct section {
    enum option_section kind;
    const char *name;           /* NULL: unnamed kind */
    struct ini_section *source; /* NULL: not in the file */
    void *conf;                 /* struct that its options fill: config, server_boss_conf, ... */
    struct arena *arena;        /* owns all that the struct points at */
};

/* section_entry(section, key): return the entry of ${key}; NULL: not in the file. */
const struct ini_entry *section_entry(const struct section *section, const char *key);

/*
 * section_valid_entry(section, key):
 * As section_entry(), but NULL also if refused.
 *
 * Thread: as config_reload()
 */
const struct ini_entry *section_valid_entry(const struct section *section, const char *key);

/*
 * section_refused(section, key):
 * Does the file set ${key} to a refused value?
 *
 * Thread: as config_reload()
 */
bool section_refused(const struct section *section, const char *key);

/* section_has_value(section, key): has ${key} a value in the file, perhaps a refused one? */
bool section_has_value(const struct section *section, const char *key);

/* section_has_defaults(section): has it values of a [defaults KIND]? */
bool section_has_defaults(const struct section *section);

/* section_list_word(list, size, word): append ${word}, behind a comma if it is not first. */
void section_list_word(char *list, size_t size, const char *word);

#endif
