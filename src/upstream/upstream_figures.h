/*
 * upstream/upstream_figures: statistics of upstreams and their servers.
 */
#ifndef UPSTREAM_UPSTREAM_FIGURES_H
#define UPSTREAM_UPSTREAM_FIGURES_H

struct figure_visitor;
struct server_set;
struct upstream;
struct upstream_server;

/*
 * upstream_figures(up, set, v) / upstream_figures_server(up, server, v) /
 * upstream_figures_connects(up, server, v):
 * Show ${v} the figures of ${up}, without its servers / of ${server} / of its connects only. ${set}
 * is a set of ${up} from membership_hold_set(); ${server} is in one.
 */
void upstream_figures(const struct upstream *up, const struct server_set *set,
                      struct figure_visitor *v);
void upstream_figures_server(const struct upstream *up, struct upstream_server *server,
                             struct figure_visitor *v);
void upstream_figures_connects(const struct upstream *up, const struct upstream_server *server,
                               struct figure_visitor *v);

#endif
