/*
 * option/option_tls: option kinds: TLS.
 */
#ifndef OPTION_OPTION_TLS_H
#define OPTION_OPTION_TLS_H

#include "option/option.h"

/* const char *: a host name, in lower case, or an IP address */
extern const struct option_kind option_tls_peer_name;

/* struct listener_tls_conf: names of [tls NAME] sections */
extern const struct option_kind option_tls_sections;

#endif
