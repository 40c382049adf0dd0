/*
 * option/option_internal: rows of each section, for option/option.c.
 */
#ifndef OPTION_OPTION_INTERNAL_H
#define OPTION_OPTION_INTERNAL_H

#include "option/option.h"

struct option_rows {
    const struct option *list;
    unsigned n;
};

extern const struct option_rows option_process_reactord;
extern const struct option_rows option_process_boss;
extern const struct option_rows option_process_worker;
extern const struct option_rows option_process_executor;
extern const struct option_rows option_process_handshake;
extern const struct option_rows option_admin;
extern const struct option_rows option_listen;
extern const struct option_rows option_listen_rest;
extern const struct option_rows option_fault; /* of [listen NAME] */
extern const struct option_rows option_upstream;
extern const struct option_rows option_upstream_rest;
extern const struct option_rows option_spare; /* of [upstream NAME] */
extern const struct option_rows option_listen_socket;
extern const struct option_rows option_upstream_socket;
extern const struct option_rows option_tls;
extern const struct option_rows option_resolver;
extern const struct option_rows option_limits;
extern const struct option_rows option_access_log;

#endif
