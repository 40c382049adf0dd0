/*
 * ctl/ctl_upstreams: upstreams and their servers in one list.
 */
#ifndef CTL_CTL_UPSTREAMS_H
#define CTL_CTL_UPSTREAMS_H

#include <jansson.h>

/*
 * ctl_upstreams_flat(upstreams):
 * Return a list with each upstream, behind it its servers, whose `name` is then UPSTREAM/SERVER.
 * The `state` of an upstream is how many of them are up.
 *
 * Owns:   the caller decrements the reference
 */
json_t *ctl_upstreams_flat(const json_t *upstreams);

/*
 * ctl_upstreams_find(flat, name):
 * The row of that name, borrowed; NULL: none.
 */
const json_t *ctl_upstreams_find(const json_t *flat, const char *name);

#endif
