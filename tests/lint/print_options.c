/*
 * Prints for check_options.py, with tabs between: the option table (section, key, default, allowed,
 * what a change applies to, and help), and each word of an option's value, handler of a pipeline
 * and variable of an access log: `word` with section, key and word, `handler` and `variable` with
 * the name.
 */
#include <stdio.h>
#include <stdlib.h>

#include "option/option.h"
#include "handlers/handler_type.h"
#include "handlers/pipeline_template.h"
#include "stats/access_log_variable.h"

static void print_words(const char *section, const struct option *o)
{
    for (const struct option_word *w = o->words; w && w->word; w++)
        printf("word\t%s\t%s\t%s\n", section, o->key, w->word);
}

int main(void)
{
    const struct handler_type *type;

    for (unsigned section = 0; section < OPTION_SECTIONS; section++) {
        const struct option *o;

        for (unsigned i = 0; (o = option_row(section, i)) != NULL; i++) {
            printf("%s\t%s\t%s\t%s\t%s\t%s\n", option_section_name(section), o->key,
                   o->flags & OPTION_REQUIRED ? "(required)" : o->fallback, o->allowed,
                   option_applies_text(o->applies), o->help);
            print_words(option_section_name(section), o);
        }
    }
    for (unsigned i = 0; (type = pipeline_template_type(i)) != NULL; i++)
        printf("handler\t%s\n", type->name);
    for (unsigned i = 0; i < access_log_variable_count(); i++)
        printf("variable\t%s\n", access_log_variable_at(i)->name);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
