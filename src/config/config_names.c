#include "config/config_names.h"

#include <stdio.h>
#include <string.h>

#include "config/config_memory.h"
#include "config/diagnostics.h"
#include "config/option_kind.h"

void config_names_refuse(const struct config_name *name, const struct config_memory *m,
                         struct diagnostics *diagnostics)
{
    const char *title = option_section_title(name->kind);
    struct diagnostics_suggestion near;
    char hint[2 * OPTION_KIND_NAME_BYTES];

    diagnostics_suggest(&near, name->text);
    for (unsigned i = 0; i < m->n_sections; i++)
        if (m->sections[i].kind == name->kind)
            diagnostics_offer(&near, m->sections[i].name);
    if (near.best)
        snprintf(hint, sizeof(hint), "did you mean '%s'?", near.best);
    else
        snprintf(hint, sizeof(hint), "the NAME of %s %s", strchr("aeiou", title[1]) ? "an" : "a",
                 title);
    diagnostics_add(diagnostics, name->entry->line, "[%s] %s: there is no [%s %s] (%s)",
                    name->section->source->name, name->entry->key, option_section_name(name->kind),
                    name->text, hint);
}
