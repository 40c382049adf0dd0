/* option/option_server: option kind: a server of an upstream, and the words behind its address. */
#ifndef OPTION_OPTION_SERVER_H
#define OPTION_OPTION_SERVER_H

#include "option/option.h"

/* next server of an upstream_conf, which has space for it; host names are not resolved */
extern const struct option_kind option_server;

#endif
