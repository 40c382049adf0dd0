/*
 * config/option_proxy: option kinds: PROXY protocol.
 */
#ifndef CONFIG_OPTION_PROXY_H
#define CONFIG_OPTION_PROXY_H

#include "config/option.h"

/* struct cidr_list: comma-separated blocks */
extern const struct option_kind option_proxy_trusted;

/* crc32c and unique_id of a struct proxy_header_conf: comma-separated words */
extern const struct option_kind option_proxy_tlvs;

#endif
