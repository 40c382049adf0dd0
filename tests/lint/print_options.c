/*
 * Prints the option table for check_options.py: section, key, default, allowed and help, with tabs
 * between.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config/option.h"

int main(void)
{
    for (unsigned section = 0; section < OPTION_SECTIONS; section++) {
        unsigned n;
        const struct option *o = option_table(section, &n);

        for (const struct option *end = o + n; o < end; o++)
            printf("%s\t%s\t%s\t%s\t%s\n", option_section_name(section), o->key,
                   o->flags & OPTION_REQUIRED ? "(required)" : o->fallback, o->allowed, o->help);
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
