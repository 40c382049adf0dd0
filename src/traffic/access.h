/*
 * traffic/access: which clients a listener lets in, by where they come from.
 *
 * An ordered list of rules: the first block that has the client decides, and what none has is decided by `others`. Asked
 * by the boss before there is a session, so that a client that is denied costs no memory.
 */
#ifndef TRAFFIC_ACCESS_H
#define TRAFFIC_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct access;
struct address;
struct cidr;

/* Rule ${i} is for ${blocks[i]}. */
struct access_conf {
    const struct cidr *blocks;
    const bool *allow;
    size_t n;
    bool deny_others; /* false: whoever is in no block is let in */
};

/*
 * access_create(out, conf):
 * The rules of ${conf}, ready to be asked. When they let everybody in, ${out} is NULL, which access_allows() takes.
 *
 * Thread: any
 * Owns:   ${conf} is borrowed
 * Errors: 0; -ENOMEM
 */
int access_create(struct access **out, const struct access_conf *conf) MUST_CHECK;

/*
 * access_allows(a, listener, client):
 * May ${client} come in? That it may not is counted, and logged at info level, one line a second.
 *
 * Thread: any
 * Errors: none
 */
bool access_allows(struct access *a, const char *listener, const struct address *client);

/*
 * access_denied(a):
 * How many were denied.
 *
 * Thread: any
 * Errors: none
 */
uint64_t access_denied(const struct access *a);

/*
 * access_destroy(a):
 * Free it; NULL is allowed.
 *
 * Thread: any, when nobody asks any more
 * Errors: none
 */
void access_destroy(struct access *a);

#endif
