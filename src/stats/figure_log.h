/*
 * stats/figure_log: figures as log lines: `stats KIND NAME key=value ...` at notice level.
 */
#ifndef STATS_FIGURE_LOG_H
#define STATS_FIGURE_LOG_H

struct figure_visitor;

/*
 * figure_log():
 * Return the visitor that logs figures.
 *
 * Thread: any
 */
struct figure_visitor *figure_log(void);

#endif
