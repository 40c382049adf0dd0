/*
 * net/name_service: does a host name come from DNS alone, according to nsswitch.conf(5) and
 * hosts(5)?
 *
 * Such names are queried directly, for their TTL; getaddrinfo(3) serves all others (/etc/hosts,
 * mdns ...).
 */
#ifndef NET_NAME_SERVICE_H
#define NET_NAME_SERVICE_H

#include <stdbool.h>

/* name_service_is_dns(host): does ${host} come from DNS alone? Thread: any but loops */
bool name_service_is_dns(const char *host);

/*
 * name_service_is_dns_line(line, files):
 * Does ${line} list only `dns`, or `files dns`? *${files} tells whether `files` is listed.
 */
bool name_service_is_dns_line(const char *line, bool *files);

#endif
