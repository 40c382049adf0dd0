/*
 * net/name_service: does the system ask DNS for a host name? By the line `hosts` of
 * nsswitch.conf(5), and hosts(5).
 *
 * Only DNS says how long an address is valid (TTL), and getaddrinfo(3) does not pass it on. So
 * whoever wants the TTL asks DNS, but only for what getaddrinfo(3) would get from there too: after
 * /etc/hosts where `files` comes first, and not where another source, such as mdns, comes before
 * DNS or after it.
 */
#ifndef NET_NAME_SERVICE_H
#define NET_NAME_SERVICE_H

#include <stdbool.h>

/*
 * name_service_is_dns(host):
 * Is DNS alone asked for ${host}? Reads the two files.
 *
 * Thread: any but a loop
 */
bool name_service_is_dns(const char *host);

/*
 * name_service_is_dns_line(line):
 * Is DNS the only source that the line ${line} of nsswitch.conf(5) leaves for a host name that is
 * not in /etc/hosts? *${files} says whether /etc/hosts comes first.
 *
 * Thread: any
 */
bool name_service_is_dns_line(const char *line, bool *files);

#endif
