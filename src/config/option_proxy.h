/*
 * config/option_proxy: the kinds of values that have to do with the PROXY protocol. See option.h
 * for the contract of option_kind.set.
 */
#ifndef CONFIG_OPTION_PROXY_H
#define CONFIG_OPTION_PROXY_H

#include "config/option.h"

/* a struct cidr_list: blocks of addresses, with commas between */
extern const struct option_kind option_proxy_trusted;

/* crc32c and unique_id of a struct proxy_header_conf: words with commas between */
extern const struct option_kind option_proxy_tlvs;

#endif
