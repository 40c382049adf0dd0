/*
 * ctl/ctl_top_layout: how the lines of a screen are shared out among sections.
 */
#ifndef CTL_CTL_TOP_LAYOUT_H
#define CTL_CTL_TOP_LAYOUT_H

#include <stdbool.h>

struct ctl_top_layout_section {
    unsigned wanted; /* rows, without titles */
    unsigned rows;   /* granted */
    bool is_shown;   /* with its titles */
};

/*
 * ctl_top_layout(sections, n, lines):
 * Give each section a line for its titles and one row, and share the rest equally, but give no
 * section more than it wants. If titles and a row of each section do not fit, leave out the first
 * sections. Return whether an empty line fits between the sections.
 */
bool ctl_top_layout(struct ctl_top_layout_section *sections, unsigned n, unsigned lines);

#endif
