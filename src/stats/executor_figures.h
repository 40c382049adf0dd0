/*
 * stats/executor_figures: the figures of the executor.
 */
#ifndef STATS_EXECUTOR_FIGURES_H
#define STATS_EXECUTOR_FIGURES_H

struct executor;
struct figure_visitor;

/* executor_figures(e, v): show ${v} the figures of ${e}. */
void executor_figures(struct executor *e, struct figure_visitor *v);

#endif
