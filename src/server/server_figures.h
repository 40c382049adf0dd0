/*
 * server/server_figures: a walk over all objects of the server that shows their figures.
 *
 * A walk has references to its objects: it may pause after each step, for any time, while the
 * configuration changes, and shows each object once. End it before server_destroy().
 *
 *   begin -> step ... step -> end
 */
#ifndef SERVER_SERVER_FIGURES_H
#define SERVER_SERVER_FIGURES_H

#include <stdbool.h>

#include "base/must.h"

struct figure_visitor;
struct server;
struct server_figures;

struct server_figures_conf {
    unsigned max_servers; /* further servers are left out, and counted */
    bool removed; /* also removed upstreams that are still referenced: a name may come twice */
    bool heap;    /* also overload_heap_figures() */
    bool sampled; /* only loops, listeners, upstreams, and the connects of servers */
};

/*
 * server_figures_begin(out, sv, conf):
 * Begin a walk: list all objects.
 *
 * Owns:   the caller calls server_figures_end()
 * Errors: 0; -ENOMEM
 */
int server_figures_begin(struct server_figures **out, struct server *sv,
                         const struct server_figures_conf *conf) NODISCARD;

/*
 * server_figures_step(w, v):
 * Visit the next object; false: it was the last.
 *
 * Thread: any, one call at a time
 */
bool server_figures_step(struct server_figures *w, struct figure_visitor *v);

/* server_figures_end(w): free ${w}, even before the last step; NULL is allowed. */
void server_figures_end(struct server_figures *w);

/* server_figures_log(sv): log all figures, as notices. */
void server_figures_log(struct server *sv);

#endif
