/*
 * ctl/ctl_upstreams: upstreams and their servers in one list.
 */
#ifndef CTL_CTL_UPSTREAMS_H
#define CTL_CTL_UPSTREAMS_H

#include <jansson.h>

/*
 * ctl_upstreams_flat(upstreams):
 * Return a list with each upstream followed by its servers. A server's `name` becomes
 * UPSTREAM/SERVER, an upstream's `state` how many servers are up.
 *
 * Owns:   the caller decrements the reference
 */
json_t *ctl_upstreams_flat(const json_t *upstreams);

/* ctl_upstreams_find(flat, name): return the row named ${name}, borrowed; NULL: none. */
const json_t *ctl_upstreams_find(const json_t *flat, const char *name);

#endif
