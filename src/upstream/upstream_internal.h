/* upstream/upstream_internal: shared by the files of upstream. */
#ifndef UPSTREAM_UPSTREAM_INTERNAL_H
#define UPSTREAM_UPSTREAM_INTERNAL_H

#include "upstream/upstream.h"

struct figure_table;

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

/* upstream_is_bounded(conf): has any server max_connections? */
bool upstream_is_bounded(const struct upstream_conf *conf);

#endif
