#include "option/section.h"

#include <stdio.h>
#include <string.h>

const struct ini_entry *section_entry(const struct section *section, const char *key)
{
    return section->source ? ini_find(section->source, key) : NULL;
}

const struct ini_entry *section_valid_entry(const struct section *section, const char *key)
{
    return section_refused(section, key) ? NULL : section_entry(section, key);
}

bool section_refused(const struct section *section, const char *key)
{
    const struct ini_entry *entry = section_entry(section, key);

    return entry && entry->refused;
}

bool section_has_value(const struct section *section, const char *key)
{
    const struct ini_entry *entry = section_entry(section, key);

    return entry && (entry->refused || *entry->value != '\0');
}

bool section_has_defaults(const struct section *section)
{
    for (unsigned i = 0; section->source && i < section->source->n_entries; i++)
        if (section->source->entries[i].is_default)
            return true;
    return false;
}

void section_list_word(char *list, size_t size, const char *word)
{
    size_t len = strlen(list);
    int more = snprintf(list + len, size - len, "%s%s", len > 0 ? ", " : "", word);

    MUST(more >= 0 && len + (size_t)more < size);
}
