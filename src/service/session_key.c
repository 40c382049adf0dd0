#include "service/session_key.h"

#include <string.h>

#include "base/hash.h"
#include "net/channel.h"
#include "net/sock.h"
#include "service/session.h"
#include "service/session_header.h"
#include "service/session_hello.h"
#include "service/session_tls.h"
#include "tls/server_name.h"
#include "upstream/upstream.h"

/* Longest hashed address: the path of a unix socket. */
#define SESSION_KEY_BYTES (sizeof(((struct sockaddr_un *)NULL)->sun_path) + sizeof(uint16_t))

/* Address and port, or path; at NULL: ${a} has none. ${bytes} holds SESSION_KEY_BYTES. */
static struct proxy_header_value session_key_address(const struct address *a, uint8_t *bytes)
{
    uint16_t port = address_port(a);
    size_t len;
    const void *host = address_host(a, &len);

    if (!host)
        host = address_path(a, &len);
    if (!host)
        return (struct proxy_header_value){NULL, 0};
    memcpy(bytes, host, len);
    memcpy(bytes + len, &port, sizeof(port));
    return (struct proxy_header_value){bytes, len + sizeof(port)};
}

/* Where the client wanted to go: to the proxy in front of us, or to us. */
static struct proxy_header_value session_key_destination(const struct session *s, uint8_t *bytes)
{
    const struct address *told = session_header_destination(s);
    struct address local;

    if (!told && sock_local(&local, s->legs[0]->io.fd) < 0)
        return (struct proxy_header_value){NULL, 0};
    return session_key_address(told ? told : &local, bytes);
}

/* The server name that a proxy in front of us tells; raw if it is no host name. */
static struct proxy_header_value session_key_told_name(const struct session *s, char *name)
{
    const struct proxy_header_tls *told = session_header_tls(s);

    if (!told || told->authority.n == 0)
        return (struct proxy_header_value){NULL, 0};
    if (server_name_read(name, (const char *)told->authority.at, told->authority.n) < 0)
        return told->authority;
    return (struct proxy_header_value){(const uint8_t *)name, strlen(name)};
}

/*
 * The server name of TLS with us, of TLS passed on, or of TLS with a proxy in front of us; ${bytes}
 * holds SERVER_NAME_BYTES.
 */
static struct proxy_header_value session_key_name(const struct session *s, char *bytes)
{
    const char *name = session_tls_name(s);

    if (!name)
        name = session_hello_name(s);
    if (name)
        return (struct proxy_header_value){(const uint8_t *)name, strlen(name)};
    return session_key_told_name(s, bytes);
}

uint64_t session_key_by(struct session *s, const struct upstream_hash_key *key)
{
    uint8_t bytes[SESSION_KEY_BYTES];
    char name[SERVER_NAME_BYTES];
    struct proxy_header_value value = {NULL, 0};

    switch (key->by) {
    case UPSTREAM_HASH_CLIENT: break;
    case UPSTREAM_HASH_CLIENT_PORT: value = session_key_address(&s->peer, bytes); break;
    case UPSTREAM_HASH_SNI: value = session_key_name(s, name); break;
    case UPSTREAM_HASH_DESTINATION: value = session_key_destination(s, bytes); break;
    case UPSTREAM_HASH_TLV: value = session_header_tlv(s, key->tlv); break;
    }
    return value.n > 0 ? hash_stable(value.at, value.n) : session_key(s);
}
