/*
 * net/address: IPv4, IPv6 and unix stream socket addresses.
 *
 * Written forms:   127.0.0.1:7   [::1]:7   name:7   *:7   /run/x.sock   @abstract
 * `*:7` is two addresses, 0.0.0.0 and [::] (always IPv6 only). An IPv4-mapped address
 * ([::ffff:127.0.0.1]:7) becomes IPv4.
 */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/must.h"

struct address {
    socklen_t len;
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    } u;
};

/* Longest text of address_format(), with NUL. */
#define ADDRESS_TEXT_BYTES 128

/* Longest host name (RFC 1035, section 2.3.4), root's dot and NUL. */
#define ADDRESS_HOST_BYTES 255

/*
 * address_parse(out, max, word):
 * Parse the literal ${word}: one address, or two for `*:port`. Does no lookup.
 *
 * Thread: any
 * Units:  ${max} addresses, at least 2
 * Errors: number of addresses; -EINVAL; -ENOENT (has the form of a host name and port); -ERANGE
 *         (port not 1 to 65535); -ENAMETOOLONG (unix path)
 */
int address_parse(struct address *out, size_t max, const char *word) NODISCARD;

/*
 * address_parse_target(out, max, word):
 * As address_parse(), for an address to connect to: `localhost:port` is the two loopback addresses.
 *
 * Thread: any
 * Errors: as address_parse(); -ENOENT: other host name, use resolve_host()
 * Source: RFC 6761, section 6.3
 */
int address_parse_target(struct address *out, size_t max, const char *word) NODISCARD;

/*
 * address_parse_host(out, word):
 * Parse an IPv4 or IPv6 address without a port (`192.0.2.1`, `[2001:db8::1]` or `2001:db8::1`); the
 * port is 0.
 *
 * Thread: any
 * Errors: 0; -EINVAL (also `*`); -ENOENT (has the form of a host name)
 */
int address_parse_host(struct address *out, const char *word) NODISCARD;

/*
 * address_split_port(host, size, word, port):
 * Split ${word} (`host:port`) at its last colon.
 *
 * Thread: any
 * Errors: 0; -EINVAL (no host, no port, or longer than ${size}); -ERANGE (port not 1 to 65535)
 */
int address_split_port(char *host, size_t size, const char *word, uint16_t *port) NODISCARD;

/*
 * address_format(text, size, a):
 * Write ${a} as in the configuration (`[::1]:7`, `/run/x.sock`, `@abstract`). Unix peers: `unix:`
 * without a name, `unix:PATH` with a relative path. Returns ${text}.
 *
 * Thread: any
 * Units:  ${size} bytes, at least ADDRESS_TEXT_BYTES
 */
const char *address_format(char *text, size_t size, const struct address *a);

/*
 * address_equal(a, b):
 * Same family, address, port and path?
 *
 * Thread: any
 */
bool address_equal(const struct address *a, const struct address *b);

/*
 * address_covers(listen, target):
 * Would a connection to ${target} reach a socket listening on ${listen} of this host? True if they
 * are equal, or if ${listen} is a wildcard, ${target} a loopback address and family and port match.
 * A wildcard ${target} means loopback. Interface addresses are not checked.
 *
 * Thread: any
 */
bool address_covers(const struct address *listen, const struct address *target);

/*
 * address_conflicts(a, b, reuseport):
 * Would bind(2) or listen(2) fail for sockets on both ${a} and ${b}? A wildcard conflicts with the
 * port on all addresses of its family (IPv6 is IPv6 only), unless both sockets have SO_REUSEPORT:
 * ${reuseport}. Equal addresses conflict even then, because they would share clients.
 *
 * Thread: any
 */
bool address_conflicts(const struct address *a, const struct address *b, bool reuseport);

/*
 * address_host(a, len):
 * The 4 or 16 bytes of the IP address; 4 for a mapped IPv4 address. NULL for a unix socket.
 *
 * Thread: any
 * Owns:   nothing; points into ${a}
 */
const void *address_host(const struct address *a, size_t *len);

/*
 * address_path(a, len):
 * The path or abstract name of a unix socket. NULL without one (unix clients) and for other
 * families.
 *
 * Thread: any
 * Owns:   nothing; points into ${a}
 */
const void *address_path(const struct address *a, size_t *len);

/*
 * address_set_host(out, host, len, port):
 * Set ${out} from the 4 or 16 bytes of an IP address. A mapped IPv4 address becomes IPv4.
 *
 * Thread: any
 */
void address_set_host(struct address *out, const void *host, size_t len, uint16_t port);

/*
 * address_port(a) / address_set_port(a, port):
 * Get or set the port. A unix socket has port 0.
 *
 * Thread: any
 */
uint16_t address_port(const struct address *a);
void address_set_port(struct address *a, uint16_t port);

/*
 * address_is_unix(a):
 * Is ${a} a unix socket?
 *
 * Thread: any
 */
bool address_is_unix(const struct address *a);

#endif
