/* upstream/upstream_internal: shared by the files of upstream. */
#ifndef UPSTREAM_UPSTREAM_INTERNAL_H
#define UPSTREAM_UPSTREAM_INTERNAL_H

#include "upstream/upstream.h"

struct figure_table;
struct server_set;
struct upstream_server;

/* Figures of an upstream; live are those of struct upstream. */
extern const struct figure_table upstream_figures_table;

/*
 * upstream_keep_conf(conf) / upstream_drop_conf(conf):
 * Copy ${conf} into ${conf}->memory and add a reference to that memory / release the reference.
 * Without memory, return ${conf} itself.
 *
 * Thread: control loop, or main before start / any
 * Errors: NULL (no memory)
 */
const struct upstream_conf *upstream_keep_conf(const struct upstream_conf *conf) NODISCARD;
void upstream_drop_conf(const struct upstream_conf *conf);

/*
 * upstream_in_use_init(up) / upstream_in_use_close(up):
 * Initialize / free what ${up} needs for it.
 *
 * Thread: as upstream_create() / as upstream_destroy()
 */
void upstream_in_use_init(struct upstream *up);
void upstream_in_use_close(struct upstream *up);

/*
 * upstream_in_use_begin(up, set):
 * Choose the servers in use in ${set}, the new set of ${up}.
 *
 * Thread: control loop, or main before start
 */
void upstream_in_use_begin(struct upstream *up, struct server_set *set);

/*
 * upstream_in_use_look(up):
 * Choose the servers in use after a change of flags, and log a change.
 */
void upstream_in_use_look(struct upstream *up);

/*
 * upstream_in_use_continue(up, server):
 * Let ${server}, which is in use in the process that this one replaces, be in use here, now or with
 * the next set.
 *
 * Thread: as upstream_state_continue_server()
 */
void upstream_in_use_continue(struct upstream *up, struct upstream_server *server);

/* upstream_in_use_is(server): is ${server} in use, and fit? */
bool upstream_in_use_is(const struct upstream_server *server);

/* upstream_is_bounded(conf): has any server max_connections? */
bool upstream_is_bounded(const struct upstream_conf *conf);

#endif
