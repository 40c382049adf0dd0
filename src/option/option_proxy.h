/*
 * option/option_proxy: option kinds: PROXY protocol.
 */
#ifndef OPTION_OPTION_PROXY_H
#define OPTION_OPTION_PROXY_H

#include "option/option.h"

/* struct cidr_list: comma-separated blocks */
extern const struct option_kind option_proxy_trusted;

/* flags of a struct proxy_header_conf: comma-separated option.words, each the offset of its flag */
extern const struct option_kind option_proxy_tlvs;

#endif
