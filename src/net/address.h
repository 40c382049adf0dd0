/*
 * net/address: IPv4, IPv6 and unix stream socket addresses.
 *
 *   127.0.0.1:7   [::1]:7   name:7   *:7   /run/x.sock   @abstract   abns@abstract
 *
 * `abns@` is the notation of HAProxy for a name that it pads with NULs to the longest.
 *
 * `*:7` is 0.0.0.0 and [::]; sockets on [::] do not accept IPv4. IPv4-mapped addresses
 * ([::ffff:127.0.0.1]:7) become IPv4.
 */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/must.h"

/*
 * note: zone. The index of an interface changes when the interface is made anew; its name stays. A
 * link-local address that was parsed with a name keeps it, for sock_connect() and reloads.
 */
struct address_zoned {
    struct sockaddr_in6 in6;
    char zone[IF_NAMESIZE]; /* empty: unknown. Valid only behind address_parse() and its kin */
};

struct address {
    socklen_t len;
    uint32_t netns; /* netns_id() of an address to listen on; 0: the namespace of the process */
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct address_zoned zoned; /* see note: zone */
        struct sockaddr_un un;
    } u;
};

/* Longest text of address_format(), with NUL. */
#define ADDRESS_TEXT_BYTES 128

/* Longest host name, with final dot and NUL: RFC 1035, section 2.3.4. */
#define ADDRESS_HOST_BYTES 255

/*
 * address_parse(out, max, word):
 * Parse a literal, without lookup: one address, or two for `*:port`.
 *
 * Units:  ${max} addresses, at least 2
 * Errors: number of addresses; -EINVAL; -ENOENT (looks like a host name and port); -ERANGE (port
 *         not 1 to 65535); -ENAMETOOLONG (unix path)
 */
int address_parse(struct address *out, size_t max, const char *word) NODISCARD;

/*
 * address_parse_target(out, max, word):
 * Parse an address to connect to, as address_parse() does; `localhost:port` gives both loopback
 * addresses.
 *
 * Errors: as address_parse(); -ENOENT: use resolve_host()
 * Source: RFC 6761, section 6.3
 */
int address_parse_target(struct address *out, size_t max, const char *word) NODISCARD;

/*
 * address_parse_host(out, word):
 * Parse an IP address without port: `192.0.2.1`, `[2001:db8::1]`, `2001:db8::1`.
 *
 * Errors: 0; -EINVAL (also `*`); -ENOENT (looks like a host name)
 */
int address_parse_host(struct address *out, const char *word) NODISCARD;

/*
 * address_is_on_new_interface(a, b):
 * Are ${a} and ${b}, both parsed, the same link-local address on an interface of the same name,
 * which was made anew in between?
 */
bool address_is_on_new_interface(const struct address *a, const struct address *b);

/*
 * address_split_port(host, size, word, port):
 * Split `host:port` at the last colon.
 *
 * Errors: 0; -EINVAL (no host, no port, or too long); -ERANGE (port not 1 to 65535)
 */
int address_split_port(char *host, size_t size, const char *word, uint16_t *port) NODISCARD;

/*
 * address_format(text, size, a):
 * Write ${a} as in the configuration; unnamed unix sockets as `unix:`, relative paths as
 * `unix:PATH`. Returns ${text}.
 *
 * Units:  ${size} bytes, at least ADDRESS_TEXT_BYTES
 */
const char *address_format(char *text, size_t size, const struct address *a);

/* address_equal(a, b): are network namespace, family, address, port and path the same? */
bool address_equal(const struct address *a, const struct address *b);

/*
 * address_covers(listen, target):
 * Would connecting to ${target}, from its namespace, reach our socket on ${listen}? True if they
 * are equal, or if ${listen} is a wildcard and ${target} is loopback, of the same family and port.
 * A wildcard ${target} counts as 127.0.0.1 or ::1; other addresses of this host are not recognised.
 */
bool address_covers(const struct address *listen, const struct address *target);

/*
 * address_conflicts(a, b, reuseport):
 * Would a listener on ${b} fail, or share clients with a listener on ${a}? A wildcard takes its
 * family's port on all addresses, unless both use SO_REUSEPORT.
 */
bool address_conflicts(const struct address *a, const struct address *b, bool reuseport);

/*
 * address_host(a, len):
 * Return the ${len} bytes of an IP address, 4 or 16 (IPv4-mapped: 4); NULL: ${a} is a unix socket.
 *
 * Owns:   points into ${a}
 */
const void *address_host(const struct address *a, size_t *len);

/*
 * address_path(a, len):
 * Return the path or abstract name of a unix socket; NULL: ${a} has none, as most unix clients.
 *
 * Owns:   points into ${a}
 */
const void *address_path(const struct address *a, size_t *len);

/*
 * address_set_host(out, host, len, port):
 * Set ${out} to the IP address of ${len} bytes, 4 or 16. IPv4-mapped becomes IPv4.
 */
void address_set_host(struct address *out, const void *host, size_t len, uint16_t port);

/*
 * address_port(a) / address_set_port(a, port) / address_is_unix(a):
 * Return the port (unix: 0) / set the port (unix: no-op) / is ${a} a unix socket?
 */
uint16_t address_port(const struct address *a);
void address_set_port(struct address *a, uint16_t port);

bool address_is_unix(const struct address *a);

/*
 * address_set_netns(a, id):
 * Put ${a} into the network namespace ${id}. The file of a unix socket is in none.
 */
void address_set_netns(struct address *a, uint32_t id);

#endif
