/*
 * stats/figure_log: figures as log lines: `stats KIND NAME key=value ...` at notice level.
 */
#ifndef STATS_FIGURE_LOG_H
#define STATS_FIGURE_LOG_H

struct figure_visitor;

/* figure_log(): return the visitor that logs figures. */
struct figure_visitor *figure_log(void);

#endif
