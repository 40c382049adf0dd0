/*
 * stats/loop_figures: the figures of a loop.
 */
#ifndef STATS_LOOP_FIGURES_H
#define STATS_LOOP_FIGURES_H

struct figure_visitor;
struct loop;

/* loop_figures(loop, v): show ${v} the figures of ${loop}. */
void loop_figures(const struct loop *loop, struct figure_visitor *v);

#endif
