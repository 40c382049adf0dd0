/*
 * server/proxy_loop: which servers are our own listeners, so that what is sent there would come
 * back. What a configuration says of it is refused when it is read; this is for the addresses that
 * names turn out to have.
 */
#ifndef SERVER_PROXY_LOOP_H
#define SERVER_PROXY_LOOP_H

#include <stdbool.h>

struct address;
struct server_conf;
struct upstream_conf;

/*
 * proxy_loop_is(conf, up, a):
 * Would a server of ${up} at ${a} send clients of ${up} there again? A mirror must be no listener
 * at all: it multiplies what goes round.
 *
 * Thread: any
 */
bool proxy_loop_is(const struct server_conf *conf, const struct upstream_conf *up,
                   const struct address *a);

#endif
