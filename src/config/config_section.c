#include "config/config_section.h"

const struct ini_entry *config_section_entry(const struct config_section *section, const char *key)
{
    return section->source ? ini_find(section->source, key) : NULL;
}

const struct ini_entry *config_section_valid_entry(const struct config_section *section,
                                                   const char *key)
{
    return config_section_refused(section, key) ? NULL : config_section_entry(section, key);
}

bool config_section_refused(const struct config_section *section, const char *key)
{
    const struct ini_entry *entry = config_section_entry(section, key);

    return entry && entry->refused;
}
