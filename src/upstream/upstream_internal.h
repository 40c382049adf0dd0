/* upstream/upstream_internal: shared by upstream.c and upstream_change.c. */
#ifndef UPSTREAM_UPSTREAM_INTERNAL_H
#define UPSTREAM_UPSTREAM_INTERNAL_H

#include "upstream/upstream.h"

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
