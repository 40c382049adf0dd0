/*
 * handover/handoff_figures: how many sessions an upgrade has handed over, and why others stay.
 *
 * The old process counts; it sends its figures to the new one (handover/session_message).
 */
#ifndef HANDOVER_HANDOFF_FIGURES_H
#define HANDOVER_HANDOFF_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "service/session_handover.h"

struct figure_visitor;

struct handoff_figures {
    uint64_t moved;                 /* from the old process to the new one */
    uint64_t stayed[SESSION_STAYS]; /* with the old process, by reason */
    bool under_way;
};

/* handoff_figures_show(f, v): show ${f}. */
void handoff_figures_show(const struct handoff_figures *f, struct figure_visitor *v);

#endif
