/*
 * stats/executor_figures: the figures of an executor.
 */
#ifndef STATS_EXECUTOR_FIGURES_H
#define STATS_EXECUTOR_FIGURES_H

#include "stats/figure.h"

struct executor;

/* executor_figures(e, subject, v): show ${v} the figures of ${e}, as those of ${subject}. */
void executor_figures(struct executor *e, enum figure_subject subject, struct figure_visitor *v);

#endif
