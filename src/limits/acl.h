/*
 * limits/acl: the allow and deny rules of a listener.
 *
 * The first rule whose block contains the client decides; without a match, `others` does. The boss
 * asks before it creates a session: a denied client costs no memory.
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

/* Rule ${i} applies to ${blocks[i]}. */
struct acl_conf {
    const struct cidr *blocks;
    const bool *allow;
    size_t n;
    bool deny_others; /* false: a client that no rule matches is allowed */
};

/*
 * acl_create(out, conf):
 * Compile the rules of ${conf}. ${out} is NULL when they allow every client; acl_allows() takes
 * NULL.
 *
 * Thread: any
 * Owns:   ${conf} is borrowed
 * Errors: 0; -ENOMEM
 */
int acl_create(struct acl **out, const struct acl_conf *conf) NODISCARD;

/*
 * acl_allows(a, listener, client):
 * Return whether ${client} is allowed. Count a denial; log it at info level, at most one line a
 * second.
 *
 * Thread: any
 */
bool acl_allows(struct acl *a, const char *listener, const struct address *client);

/*
 * acl_denied(a):
 * Return the number of denied clients.
 *
 * Thread: any
 */
uint64_t acl_denied(const struct acl *a);

/*
 * acl_destroy(a):
 * Free the rules; NULL is allowed.
 *
 * Thread: any, after the last acl_allows()
 */
void acl_destroy(struct acl *a);

#endif
