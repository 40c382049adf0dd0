/*
 * ctl/ctl_top_view: two samples as a screen, or as text.
 */
#ifndef CTL_CTL_TOP_VIEW_H
#define CTL_CTL_TOP_VIEW_H

#include <stdio.h>

#include "ctl/ctl_terminal.h"
#include "ctl/ctl_top_sample.h"

struct ctl_top_view {
    const struct ctl_top_sample *now, *before; /* before->status NULL: no rates yet */
    const char *sort;
    const char *notice; /* at the end of the first line, emphasised; NULL: none */
};

/*
 * ctl_top_view_screen(out, view, size) / ctl_top_view_text(out, view):
 * Write what fits on a screen of ${size} / write everything, without control sequences.
 */
void ctl_top_view_screen(FILE *out, const struct ctl_top_view *view, struct ctl_terminal_size size);
void ctl_top_view_text(FILE *out, const struct ctl_top_view *view);

#endif
