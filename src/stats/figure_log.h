/*
 * stats/figure_log: figures as log lines: `stats KIND NAME key=value ...` at notice level.
 */
#ifndef STATS_FIGURE_LOG_H
#define STATS_FIGURE_LOG_H

struct figure_visitor;

/*
 * figure_log():
 * The visitor that logs.
 *
 * Thread: any
 */
struct figure_visitor *figure_log(void);

#endif
