#include "config/config_section.h"

#include <stdio.h>
#include <string.h>

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

bool config_section_has_value(const struct config_section *section, const char *key)
{
    const struct ini_entry *entry = config_section_entry(section, key);

    return entry && (entry->refused || *entry->value != '\0');
}

bool config_section_has_defaults(const struct config_section *section)
{
    for (unsigned i = 0; section->source && i < section->source->n_entries; i++)
        if (section->source->entries[i].is_default)
            return true;
    return false;
}

void config_section_list_word(char *list, size_t size, const char *word)
{
    size_t len = strlen(list);
    int more = snprintf(list + len, size - len, "%s%s", len > 0 ? ", " : "", word);

    MUST(more >= 0 && len + (size_t)more < size);
}
