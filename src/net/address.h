/*
 * net/address: where a socket listens or connects: IPv4, IPv6 or a unix stream socket.
 *
 * Written forms:   127.0.0.1:7   [::1]:7   name:7   *:7   /run/x.sock   @abstract
 * `*:7` stands for every local address: two addresses, 0.0.0.0 and [::] (always IPv6 only). An
 * IPv4-mapped address ([::ffff:127.0.0.1]:7) is the IPv4 address it maps.
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

/* Room for the longest text address_format() writes, its NUL included. */
#define ADDRESS_TEXT_BYTES 128

/* Room for a host name (RFC 1035, section 2.3.4), the dot of the root and a NUL. */
#define ADDRESS_HOST_BYTES 255

/*
 * address_parse(out, max, word):
 * The addresses that ${word}, a literal, stands for: one, or two for `*:port`. Never asks a name
 * service.
 *
 * Thread: any
 * Units:  ${max} addresses of room, at least 2
 * Errors: number of addresses written; -EINVAL (not an address); -ENOENT (host:port with a host
 *         name, by its form); -ERANGE (port not 1 to 65535); -ENAMETOOLONG (unix path)
 */
int address_parse(struct address *out, size_t max, const char *word) NODISCARD;

/*
 * address_parse_target(out, max, word):
 * As address_parse(), for an address to connect to: `localhost:port` is the two loopback addresses.
 *
 * Thread: any
 * Errors: as address_parse(), where -ENOENT means any other host name: ask resolve_host()
 * Source: RFC 6761, section 6.3
 */
int address_parse_target(struct address *out, size_t max, const char *word) NODISCARD;

/*
 * address_parse_host(out, word):
 * As address_parse(), for an IPv4 or IPv6 address (`192.0.2.1`, `[2001:db8::1]` or `2001:db8::1`)
 * without a port, which is 0 then.
 *
 * Thread: any
 * Errors: 0; -EINVAL (none, or `*`); -ENOENT (a host name, by its form)
 */
int address_parse_host(struct address *out, const char *word) NODISCARD;

/*
 * address_split_port(host, size, word, port):
 * Split ${word} (`host:port`) at its last colon.
 *
 * Thread: any
 * Units:  ${size} bytes
 * Errors: 0; -EINVAL (no host or no port, or longer than ${size}); -ERANGE (port not 1 to 65535)
 */
int address_split_port(char *host, size_t size, const char *word, uint16_t *port) NODISCARD;

/*
 * address_format(text, size, a):
 * Write ${a} as it would be configured (`[::1]:7`, `/run/x.sock`, `@abstract`); "unix:" for an
 * unnamed unix peer, `unix:PATH` for one whose path is relative. Returns ${text}.
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
 * Would a connection to ${target} reach a socket that listens on ${listen} of this host? True when
 * they are equal, or when ${listen} is a wildcard with the port of ${target} and ${target} is a
 * loopback address of the same family. A wildcard ${target} is the loopback address that the kernel
 * makes of it. The addresses of this host's interfaces are not looked up.
 *
 * Thread: any
 */
bool address_covers(const struct address *listen, const struct address *target);

/*
 * address_conflicts(a, b, reuseport):
 * Does bind(2) or listen(2) refuse one of two sockets, one on ${a} and one on ${b}? A wildcard
 * takes the port on all addresses of its family (IPv6 sockets are IPv6 only), unless both have
 * SO_REUSEPORT: ${reuseport}. Two sockets on the same address conflict even then, as they would
 * share its clients.
 *
 * Thread: any
 */
bool address_conflicts(const struct address *a, const struct address *b, bool reuseport);

/*
 * address_host(a, len):
 * What of ${a} stands for the host: 4 or 16 bytes, an IPv4 address mapped to IPv6 being the 4. NULL
 * for a unix socket.
 *
 * Thread: any
 * Owns:   nothing; points into ${a}
 * Units:  bytes
 * Errors: NULL
 */
const void *address_host(const struct address *a, size_t *len);

/*
 * address_path(a, len):
 * The path of a unix socket, or its abstract name; NULL for one without a name, as clients have,
 * and other families.
 *
 * Thread: any
 * Owns:   nothing; points into ${a}
 * Units:  bytes, above 0
 * Errors: NULL
 */
const void *address_path(const struct address *a, size_t *len);

/*
 * address_set_host(out, host, len, port):
 * The opposite of address_host(): ${out} is ${port} at ${host}, 4 bytes or 16, of which those of a
 * mapped IPv4 address become that one.
 *
 * Thread: any
 * Units:  bytes
 */
void address_set_host(struct address *out, const void *host, size_t len, uint16_t port);

/*
 * address_port(a) / address_set_port(a, port):
 * The port of ${a}; it has ${port} from now on. A unix socket has none, which is 0, and keeps none.
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
