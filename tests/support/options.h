/*
 * support/options: a section's struct, and options that are set in it.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_OPTIONS_H
#define SUPPORT_OPTIONS_H

#include "config/config.h"
#include "option/option.h"
#include "upstream/upstream.h"

struct options {
    /*
     * Space for the struct of any section, so that a row can be tried without knowing which it
     * has.
     */
    union {
        struct config config;
        struct server_boss_conf boss;
        struct server_worker_conf worker;
        struct server_executor_conf executor;
        struct tls_handshakes_conf handshake;
        struct listener_conf listener;
        struct upstream_conf upstream;
    } conf;
    struct upstream_server_conf servers[4];
    struct route_conf routes[4];
};

extern struct options options;

void options_setup(void);

void options_teardown(void);

struct option_value options_value(const struct option *o, const char *key, const char *text);

/* What option_set() says of ${text}; ${conf} is as it left it. */
int options_try(enum option_section section, const char *key, const char *text);

#endif
