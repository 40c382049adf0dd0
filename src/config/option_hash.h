/* config/option_hash: option kind: hash_key of [upstream NAME]: `client`, `sni`, `tlv:0xea`. */
#ifndef CONFIG_OPTION_HASH_H
#define CONFIG_OPTION_HASH_H

#include "config/option.h"

/* struct upstream_hash_key */
extern const struct option_kind option_hash_key;

#endif
