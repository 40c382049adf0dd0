/*
 * listen/proxy_loop: detects proxy loops: is this address one of our own listeners? For resolved
 * names; config/ checks literal addresses.
 */
#ifndef LISTEN_PROXY_LOOP_H
#define LISTEN_PROXY_LOOP_H

#include <stdbool.h>

#include "base/must.h"

struct address;
struct listener_conf;
struct proxy_loop;
struct upstream_conf;

struct proxy_loop_conf {
    const struct listener_conf *listeners;
    unsigned n_listeners;
    const struct upstream_conf *upstreams; /* for their network namespaces */
    unsigned n_upstreams;
};

/*
 * proxy_loop_create(out, conf, before):
 * Copy the addresses, upstreams and mirrors of the listeners in ${conf}. Returns ${before} (may be
 * NULL), with another reference, if nothing has changed.
 *
 * Owns:   immutable; the caller has a reference
 * Errors: 0; -ENOMEM
 */
int proxy_loop_create(struct proxy_loop **out, const struct proxy_loop_conf *conf,
                      struct proxy_loop *before) NODISCARD;

/*
 * proxy_loop_hold(p) / proxy_loop_release(p):
 * Add a reference / release one: the last frees ${p}. NULL is allowed.
 */
void proxy_loop_hold(struct proxy_loop *p);
void proxy_loop_release(struct proxy_loop *p);

/*
 * proxy_loop_is(p, upstream, a):
 * Is ${a}, an address for a server of ${upstream}, a listener that leads to ${upstream} again? If
 * ${upstream} is a mirror, any listener counts.
 */
bool proxy_loop_is(const struct proxy_loop *p, const char *upstream, const struct address *a);

#endif
