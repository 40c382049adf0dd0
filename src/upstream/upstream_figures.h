/*
 * upstream/upstream_figures: the figures of upstreams and their servers.
 */
#ifndef UPSTREAM_UPSTREAM_FIGURES_H
#define UPSTREAM_UPSTREAM_FIGURES_H

struct figure_visitor;
struct server_set;
struct upstream;
struct upstream_server;

/*
 * upstream_figures(up, set, v) / upstream_figures_server(up, server, v):
 * Visit the figures of ${up} without its servers / of ${server}. ${set} is its server set
 * (membership_take()), ${server} is in it.
 *
 * Thread: any
 */
void upstream_figures(const struct upstream *up, const struct server_set *set,
                      struct figure_visitor *v);
void upstream_figures_server(const struct upstream *up, const struct upstream_server *server,
                             struct figure_visitor *v);

#endif
