/* option/option_hash: option kind: hash_key of [upstream NAME]: `client`, `sni`, `tlv:0xea`. */
#ifndef OPTION_OPTION_HASH_H
#define OPTION_OPTION_HASH_H

#include "option/option.h"

/* struct upstream_hash_key */
extern const struct option_kind option_hash_key;

#endif
