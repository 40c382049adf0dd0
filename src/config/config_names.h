/* config/config_names: options whose values are names of sections. */
#ifndef CONFIG_CONFIG_NAMES_H
#define CONFIG_CONFIG_NAMES_H

#include "option/section.h"

struct config_memory;
struct diagnostics;

/* A section's name, in the value of another section's option. */
struct config_name {
    const struct section *section;
    const struct ini_entry *entry; /* of the option */
    enum option_section kind;      /* of the section that is named */
    const char *text;
    const struct option_word *words; /* further values, to suggest; NULL: none */
    const char *allowed; /* shown if there is no suggestion; NULL: the NAME of a section */
};

/*
 * config_names_refuse(name, m, diagnostics):
 * Report that ${m} has no such section.
 *
 * Thread: as config_reload()
 */
void config_names_refuse(const struct config_name *name, const struct config_memory *m,
                         struct diagnostics *diagnostics);

#endif
