#include "ctl/ctl_top_layout.h"

#define MIN_LINES      2  /* titles and a row */
#define LINES_FOR_GAPS 20 /* with fewer lines there are no gaps */

/* Choose the sections to show, and give each a row; returns the lines left. */
static unsigned ctl_top_layout_begin(struct ctl_top_layout_section *sections, unsigned n,
                                     unsigned lines)
{
    for (unsigned i = 0; i < n; i++)
        sections[i].rows = sections[i].is_shown = 0;
    for (unsigned i = n; i-- > 0 && lines >= MIN_LINES; lines -= MIN_LINES) {
        sections[i].is_shown = true;
        sections[i].rows = 1;
    }
    return lines;
}

bool ctl_top_layout(struct ctl_top_layout_section *sections, unsigned n, unsigned lines)
{
    unsigned gaps = lines >= LINES_FOR_GAPS ? n - 1 : 0;
    unsigned left = ctl_top_layout_begin(sections, n, lines - gaps);
    bool any = true;

    while (left > 0 && any) {
        any = false;
        for (unsigned i = 0; i < n && left > 0; i++)
            if (sections[i].is_shown && sections[i].rows < sections[i].wanted) {
                sections[i].rows++;
                left--;
                any = true;
            }
    }
    return gaps > 0;
}
