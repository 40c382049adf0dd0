/*
 * limits/acl: which clients a listener lets in, by where they come from.
 *
 * An ordered list of rules: the first block that has the client decides, and what none has is
 * decided by `others`. Asked by the boss before there is a session, so that a client that is denied
 * costs no memory.
 */
#ifndef LIMITS_ACL_H
#define LIMITS_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct acl;
struct address;
struct cidr;

/* Rule ${i} is for ${blocks[i]}. */
struct acl_conf {
    const struct cidr *blocks;
    const bool *allow;
    size_t n;
    bool deny_others; /* false: whoever is in no block is let in */
};

/*
 * acl_create(out, conf):
 * The rules of ${conf}, ready to be asked. When they let everybody in, ${out} is NULL, which
 * acl_allows() takes.
 *
 * Thread: any
 * Owns:   ${conf} is borrowed
 * Errors: 0; -ENOMEM
 */
int acl_create(struct acl **out, const struct acl_conf *conf) NODISCARD;

/*
 * acl_allows(a, listener, client):
 * May ${client} come in? That it may not is counted, and logged at info level, one line a second.
 *
 * Thread: any
 */
bool acl_allows(struct acl *a, const char *listener, const struct address *client);

/*
 * acl_denied(a):
 * How many were denied.
 *
 * Thread: any
 */
uint64_t acl_denied(const struct acl *a);

/*
 * acl_destroy(a):
 * Free it; NULL is allowed.
 *
 * Thread: any, when nobody asks any more
 */
void acl_destroy(struct acl *a);

#endif
