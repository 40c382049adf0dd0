/*
 * support/profiles: a profile for clients and one for servers, and a handshake between them.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_PROFILES_H
#define SUPPORT_PROFILES_H

#include <openssl/ocsp.h>
#include <openssl/ssl.h>
#include <stdbool.h>

#include "support/certificates.h"
#include "support/suite.h"
#include "tls/tls_profile_conf.h"

struct tls_profile;

struct profiles {
    struct certificate ca, leaf;
    struct tls_profile *server, *client;
    SSL *at_server, *at_client;
    char why[512];
    struct tls_profile_conf server_conf;
    struct tls_profile_conf client_conf;
};

extern struct profiles profiles;

void profiles_set_paths(struct tls_paths *paths, const char **list, unsigned n);

void profiles_setup(void);

void profiles_teardown(void);

int profiles_load_server(void);

int profiles_load_client(void);

/* One side's bytes are the other's. */
void profiles_connect_bios(void);

/* Returns whether both sides finished. */
bool profiles_shake(const char *tls_name);

void profiles_write_one(const char *path, const struct certificate_wish *wish);

/* The common name of the certificate that a client gets which asks for ${name}; "": none. */
const char *profiles_shown_for(const char *name);

void profiles_expect_refused(const char *text);

#endif
