/* option/option_network: option kinds: addresses. They set several fields of their section. */
#ifndef OPTION_OPTION_NETWORK_H
#define OPTION_OPTION_NETWORK_H

#include "option/option.h"

struct address;

#define OPTION_NETWORK_LISTEN_ADDRESSES 1024

/* addresses and n_addresses of a listener_conf */
extern const struct option_kind option_network_addresses;

/* addresses and n_addresses of an admin_conf */
extern const struct option_kind option_network_admin_addresses;

/*
 * option_network_keep_addresses(v, from, n) / option_network_refuse_address(v, rc, word, names):
 * Copy ${n} addresses to the arena of ${v} / refuse ${word}, for which a parser of net/address
 * returned ${rc}; ${names}: host names are allowed.
 *
 * Errors: NULL (out of memory) / -EINVAL
 */
struct address *option_network_keep_addresses(struct option_value *v, const struct address *from,
                                              unsigned n);
int option_network_refuse_address(struct option_value *v, int rc, const char *word, bool names);

#endif
