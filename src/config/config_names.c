#include "config/config_names.h"

#include <stdio.h>
#include <string.h>

#include "config/config_memory.h"
#include "option/option_kind.h"
#include "ini/diagnostics.h"

void config_names_refuse(const struct config_name *name, const struct config_memory *m,
                         struct diagnostics *diagnostics)
{
    const char *title = option_section_title(name->kind);
    struct diagnostics_suggestion near;
    char hint[OPTION_PROBLEM_BYTES];

    diagnostics_suggest(&near, name->text);
    for (unsigned i = 0; i < m->n_sections; i++)
        if (m->sections[i].kind == name->kind)
            diagnostics_offer(&near, m->sections[i].name);
    for (const struct option_word *w = name->words; w && w->word; w++)
        diagnostics_offer(&near, w->word);
    if (near.best)
        snprintf(hint, sizeof(hint), "did you mean '%s'?", near.best);
    else if (name->allowed)
        snprintf(hint, sizeof(hint), "%s", name->allowed);
    else
        snprintf(hint, sizeof(hint), "the NAME of %s %s", strchr("aeiou", title[1]) ? "an" : "a",
                 title);
    diagnostics_add(diagnostics, name->entry->line, "[%s] %s: there is no [%s %s] (%s)",
                    name->section->source->name, name->entry->key, option_section_name(name->kind),
                    name->text, hint);
}
