/* net/name_servers: name servers to ask in place of those of /etc/resolv.conf. */
#ifndef NET_NAME_SERVERS_H
#define NET_NAME_SERVERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "base/ref.h"
#include "net/address.h"

#define NAME_SERVERS_MAX 8

/* The name server that answered last, for all lookups. Zeroed: none yet. */
struct dns_preference {
    _Atomic uint64_t server; /* hash of its address */
};

struct name_servers;

/* [resolver NAME] */
struct name_servers_conf {
    const char *name;
    struct address *addresses;
    unsigned n_addresses;         /* 1 to NAME_SERVERS_MAX */
    unsigned tries;               /* queries to each */
    int64_t timeout_ns;           /* of one query */
    struct name_servers *servers; /* NULL until they are created */
};

/* Constant, but for its references and the preference. */
struct name_servers {
    struct ref ref;
    struct dns_preference preference;
    struct address list[NAME_SERVERS_MAX];
    unsigned n;
    unsigned tries;
    int64_t timeout_ns;
    char name[];
};

/*
 * name_servers_create(out, conf):
 * Create name servers with one reference.
 *
 * Owns:   ${conf} is copied
 * Errors: 0; -ENOMEM
 */
int name_servers_create(struct name_servers **out, const struct name_servers_conf *conf) NODISCARD;

/* name_servers_hold(s) / name_servers_release(s): add / release a reference; NULL is allowed. */
struct name_servers *name_servers_hold(struct name_servers *s);
void name_servers_release(struct name_servers *s);

/* name_servers_same(a, b): have both the same name and settings? NULL: none. */
bool name_servers_same(const struct name_servers *a, const struct name_servers *b);

#endif
