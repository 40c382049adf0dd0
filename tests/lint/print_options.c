/*
 * Prints for check_options.py, with tabs between: the option table (section, key, default, allowed,
 * what a change applies to, and help), and `handler` with the name of each handler of a pipeline.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config/option.h"
#include "handlers/handler_type.h"
#include "handlers/pipeline_template.h"

int main(void)
{
    const struct handler_type *type;

    for (unsigned section = 0; section < OPTION_SECTIONS; section++) {
        unsigned n;
        const struct option *o = option_table(section, &n);

        for (const struct option *end = o + n; o < end; o++)
            printf("%s\t%s\t%s\t%s\t%s\t%s\n", option_section_name(section), o->key,
                   o->flags & OPTION_REQUIRED ? "(required)" : o->fallback, o->allowed,
                   option_applies_text(o->applies), o->help);
    }
    for (unsigned i = 0; (type = pipeline_template_type(i)) != NULL; i++)
        printf("handler\t%s\n", type->name);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
