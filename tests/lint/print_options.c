/* Prints the option table for check_options.py: section, key, default, allowed and help, with tabs between. */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/option.h"

int main(void)
{
    unsigned n;
    const struct option *table = option_table(&n);

    for (unsigned i = 0; i < n; i++)
        printf("%s\t%s\t%s\t%s\t%s\n", option_section_name(table[i].section), table[i].key,
               table[i].flags & OPTION_REQUIRED ? "(required)" : table[i].fallback,
               table[i].allowed, table[i].help);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
