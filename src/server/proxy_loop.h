/*
 * server/proxy_loop: detects proxy loops: is this address one of our own listeners? For resolved
 * names; config/ checks literal addresses.
 */
#ifndef SERVER_PROXY_LOOP_H
#define SERVER_PROXY_LOOP_H

#include <stdbool.h>

struct address;
struct server_conf;
struct upstream_conf;

/*
 * proxy_loop_is(conf, up, a):
 * True if a server of ${up} at ${a} is a listener of ${conf} that leads to ${up} again. For a
 * mirror, any listener counts: a mirror multiplies what it is sent.
 *
 * Thread: any
 */
bool proxy_loop_is(const struct server_conf *conf, const struct upstream_conf *up,
                   const struct address *a);

#endif
